#include "racer/blocking_connect.h"

#include <cerrno>

#include "racer/connect_call.h"
#include "racer/handover.h"
#include "racer/progress.h"
#include "racer/signal_handlers.h"
#include "resolver/clock.h"

namespace happy {
namespace {

timeval to_timeval(duration d) {
  const auto us = std::chrono::ceil<std::chrono::microseconds>(d).count();
  return {.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
}

// The shortest SO_SNDTIMEO: the kernel rounds it up to a tick of its clock, 1 to 10 ms.
constexpr timeval one_tick{.tv_sec = 0, .tv_usec = 1};

bool is_zero(const timeval& t) { return t.tv_sec == 0 && t.tv_usec == 0; }

bool set_send_timeout(int fd, const timeval& value) {
  return real->setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value) == 0;
}

// connect() counts SO_SNDTIMEO from its own start: a later call on the same fd gets the rest.
void limit_to_program_deadline(pending_race& r, time_point now) {
  if (r.program_deadline == never) return;
  const duration left = std::max(r.program_deadline - now, duration(std::chrono::microseconds(1)));
  r.borrowed_timeout = set_send_timeout(r.fd, to_timeval(left));
}

happy_step settle(core& c, pending_race& r, happy_connect& call, int result, int error) {
  end_race(c, r);
  return give(call, result, error);
}

happy_step leave(core& c, pending_race& r, happy_connect& call, int error, const char* why) {
  abandon(c, r, why);
  // connect() entered again on a pending socket says EALREADY where the first call said EINPROGRESS.
  return give(call, -1, error == EALREADY ? EINPROGRESS : error);
}

// What the program is told if it does not get a winner.
int named_error(const pending_race& r) {
  for (const failure& f : r.failures) {
    if (f.where == r.named || r.swap) return f.error;
  }
  return ETIMEDOUT;  // it was still waiting
}

// Another endpoint has won.
happy_step take(core& c, pending_race& r, happy_connect& call) {
  const int error = named_error(r);
  if (!r.handed_over && !hand_over(r))
    return leave(c, r, call, error, "the program replaced the fd");
  drop_lookup(c, r.lookup);
  return settle(c, r, call, 0, 0);
}

happy_step wait(pending_race& r, happy_connect& call, time_point now) {
  call.word = reinterpret_cast<const std::uint32_t*>(&r.word);
  call.word_value = r.open_word();
  call.error = named_error(r);
  call.wait_ns = r.program_deadline == never
                     ? -1
                     : std::max<std::int64_t>((r.program_deadline - now).count(), 0);
  return HAPPY_STEP_WAIT;
}

// The program's own attempt has failed: the others, if any, go on without it.
happy_step go_on_without_named(core& c, pending_race& r, happy_connect& call, int error,
                               time_point now) {
  fail_named(r, error, now);
  if (!r.active) {
    if (!adopt_original(r)) return leave(c, r, call, error, "the socket cannot be copied");
    r.active = true;
  }
  service_lookups(c, now);
  refresh_plan(c, r, now);
  advance(c, r, now);
  if (!r.used) return give(call, -1, error);
  if (r.won) return take(c, r, call);
  if (r.lost) return settle(c, r, call, -1, error);
  if (!hand_to_worker(c, r, call, now)) return leave(c, r, call, error, "no worker");
  return wait(r, call, now);
}

// The timed call has run out: from here on hidden attempts run beside the program's own.
happy_step open_the_race(core& c, pending_race& r, happy_connect& call, time_point now) {
  call.stage = stage_untimed;
  limit_to_program_deadline(r, now);
  if (!adopt_original(r) || !hand_to_worker(c, r, call, now)) {
    restore_send_timeout(r);
    limit_to_program_deadline(r, now);
    r.armed = r.active = false;  // the program's own attempt goes on alone
    return HAPPY_STEP_CONNECT;
  }
  r.active = true;
  return HAPPY_STEP_CONNECT;
}

// A timed connect() is not restarted under SA_RESTART, nor after SIGSTOP and SIGCONT: do it here,
// with what is left of the delay.
happy_step resume(core& c, pending_race& r, happy_connect& call, time_point now) {
  if (now >= r.active_from) return open_the_race(c, r, call, now);
  r.borrowed_timeout = set_send_timeout(r.fd, to_timeval(r.active_from - now));
  return HAPPY_STEP_CONNECT;
}

bool ran_out(int error) { return error == EINPROGRESS || error == EALREADY; }

happy_step timed_returned(core& c, pending_race& r, happy_connect& call, int error,
                          time_point now) {
  restore_send_timeout(r);
  if (ran_out(error)) return open_the_race(c, r, call, now);
  if (error == EINTR && r.program_deadline == never &&
      installed_handlers() == handlers::restarting) {
    return resume(c, r, call, now);
  }
  if (error == EINTR) return leave(c, r, call, error, "interrupted");
  return go_on_without_named(c, r, call, error, now);
}

// The host is not next door. Which handlers the program has is asked now, while the SYN travels: if only the
// kernel could say which one would interrupt the call, the worker watches the time.
happy_step quiet_returned(core& c, pending_race& r, happy_connect& call, int error,
                          time_point now) {
  restore_send_timeout(r);
  call.quiet = 0;
  // No handler could run: EINTR is SIGSTOP's, which cannot be blocked.
  if (!ran_out(error) && error != EINTR) return go_on_without_named(c, r, call, error, now);
  if (installed_handlers() != handlers::mixed) {
    call.stage = stage_timed;
    return resume(c, r, call, now);
  }
  call.stage = stage_untimed;
  limit_to_program_deadline(r, now);
  hand_to_worker(c, r, call, r.active_from);  // without a worker the attempt goes on alone
  return HAPPY_STEP_CONNECT;
}

happy_step untimed_returned(core& c, pending_race& r, happy_connect& call, int error,
                            time_point now) {
  restore_send_timeout(r);
  if (r.won) return take(c, r, call);
  if (r.lost) return settle(c, r, call, -1, named_error(r));
  if (ran_out(error)) return leave(c, r, call, error, "the program's own timeout");
  if (error == EINTR) return leave(c, r, call, error, "interrupted");
  return go_on_without_named(c, r, call, error, now);
}

}  // namespace

void restore_send_timeout(pending_race& r) {
  if (!r.borrowed_timeout) return;
  r.borrowed_timeout = false;
  if (socket_cookie(r.fd) == r.cookie) set_send_timeout(r.fd, r.program_timeout);
}

happy_step start_blocking(core& c, pending_race& r, happy_connect& call, time_point now) {
  const time_point delay_over = now + r.delay;
  if (!is_zero(r.program_timeout)) {
    r.program_deadline = now + std::chrono::seconds(r.program_timeout.tv_sec) +
                         std::chrono::microseconds(r.program_timeout.tv_usec);
  }
  const bool alone = call.single_threaded != 0;
  call.stage = stage_untimed;
  if (alone && r.program_deadline <= delay_over)
    return HAPPY_STEP_CONNECT;  // no time for another attempt
  if (alone && set_send_timeout(r.fd, one_tick)) {
    r.borrowed_timeout = true;
    r.active_from = delay_over;
    call.stage = stage_quiet;
    call.quiet = 1;
    return HAPPY_STEP_CONNECT;
  }
  if (!hand_to_worker(c, r, call, delay_over)) {
    abandon(c, r, "no worker");
    return HAPPY_STEP_PASS;
  }
  return HAPPY_STEP_CONNECT;
}

happy_step blocking_returned(core& c, pending_race& r, happy_connect& call, int result, int error,
                             time_point now) {
  if (result == 0) {
    restore_send_timeout(r);
    if (r.published && r.won) return take(c, r, call);  // the original is shut down
    connect_named(c, r, now);
    return settle(c, r, call, 0, 0);
  }
  const bool decided = r.won || r.lost;
  if (!ran_out(error) && error != EINTR && !decided && !is_endpoint_failure(error)) {
    restore_send_timeout(r);
    return leave(c, r, call, error, "not an endpoint's failure");
  }
  switch (call.stage) {
    case stage_quiet: return quiet_returned(c, r, call, error, now);
    case stage_timed: return timed_returned(c, r, call, error, now);
    default: return untimed_returned(c, r, call, error, now);
  }
}

happy_step connect_woken(core& c, happy_connect& call, int error) {
  core_guard guard(c);
  pending_race* r = c.races.find(call.record, call.generation);
  if (r == nullptr) return give(call, -1, call.error);
  const int first_error = named_error(*r);
  if (r->won) return take(c, *r, call);
  if (r->lost) return settle(c, *r, call, -1, first_error);
  if (error == EINTR) return leave(c, *r, call, EINTR, "interrupted");
  if (error == ETIMEDOUT) return leave(c, *r, call, first_error, "the program's own timeout");
  return wait(*r, call, clock_now());
}

void blocking_left(core& c, pending_race& r) {
  restore_send_timeout(r);
  abandon(c, r, "the caller has left");
}

}  // namespace happy
