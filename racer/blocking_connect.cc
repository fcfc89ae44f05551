#include "racer/blocking_connect.h"

#include <poll.h>

#include <cerrno>

#include "racer/connect_call.h"
#include "racer/handover.h"
#include "racer/history_notes.h"
#include "racer/progress.h"
#include "racer/signal_handlers.h"
#include "resolver/clock.h"
#include "shim/base/handler_sign.h"

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
happy_step take(core& c, pending_race& r, happy_connect& call, time_point now) {
  const int error = named_error(r);
  if (!r.handed_over && !hand_over(r)) {
    if (r.published || !has_connected(r.original.fd))
      return leave(c, r, call, error, "the program replaced the fd");
    trace_race_endpoint("winner", r, r.named);
    note_own_success(c, r, r.named, now);  // it was noted as overtaken
  }
  finish_lookup(c, r.lookup);
  return settle(c, r, call, 0, 0);
}

happy_step wait(pending_race& r, happy_connect& call, time_point now) {
  call.word = reinterpret_cast<const std::uint32_t*>(&r.word);
  call.word_value = r.open_word();
  r.slept_on = true;
  call.error = named_error(r);
  call.wait_ns = r.program_deadline == never
                     ? -1
                     : std::max<std::int64_t>((r.program_deadline - now).count(), 0);
  return HAPPY_STEP_WAIT;
}

// How often a race that the caller drives is looked at where poll() cannot tell what has happened.
constexpr duration look_again = milliseconds(10);

bool own_is_under_way(const happy_connect& call) { return call.stage == stage_beside; }

// The race has ended under a caller that drives it.
happy_step go_on_alone(happy_connect& call, int error) {
  if (!own_is_under_way(call)) return give(call, -1, error);
  call.stage = stage_alone;
  return HAPPY_STEP_CONNECT;
}

happy_step poll_until(pending_race& r, happy_connect& call, time_point next, time_point now) {
  static_assert(HAPPY_MAX_CONNECT_FDS == max_attempts_in_flight + 1);
  call.fd_count = 0;
  if (own_is_under_way(call) && !r.named_troubled) {
    call.fds[call.fd_count++] = {.fd = call.fd, .events = POLLOUT, .revents = 0};
  }
  for (const hidden_attempt& a : r.attempts) {
    call.fds[call.fd_count++] = {.fd = a.socket.get(), .events = POLLOUT, .revents = 0};
  }
  if (r.named_troubled || r.lookup != 0 || call.quiet != 0) next = std::min(next, now + look_again);
  next = std::min(next, r.program_deadline);
  call.wait_ns = next == never ? -1 : std::max<std::int64_t>((next - now).count(), 0);
  call.error = own_is_under_way(call) ? EINPROGRESS : named_error(r);
  return HAPPY_STEP_POLL;
}

// The winner goes behind the fd before the original ends: other threads may wait for that.
happy_step take_driven(core& c, pending_race& r, happy_connect& call, time_point now) {
  r.handed_over = hand_over(r);
  if (r.handed_over) real->shutdown(r.original_dup.get(), SHUT_RDWR);
  return take(c, r, call, now);
}

// As connect() tells it of an attempt that has ended, and takes it from the socket.
int take_own_error(const pending_race& r) {
  if (r.taken_back)
    return EPIPE;  // the kernel has seen that it is another connection's, and leaves its error
  int error = 0;
  read_socket(r.original_dup.get(), SOL_SOCKET, SO_ERROR, error);
  return error != 0 ? error : ECONNABORTED;
}

bool is_taken_back(const pending_race& r) {
  return r.original_dup.is_ours() && was_taken_back(r.original_dup.get());
}

// How the attempt of a closed fd went. The kernel makes a call that a handler has interrupted anew, by its number.
int error_of_orphan(const pending_race& r, const happy_connect& call) {
  if (!own_is_under_way(call)) return named_error(r);
  if (call.restarted != 0 || !r.original_dup.is_ours()) return EBADF;
  const int fd = r.original_dup.get();
  if (!r.taken_back) {
    if (has_connected(fd)) return 0;
    if (is_connecting(fd)) return EINPROGRESS;
  }
  return take_own_error(r);
}

// The program's own attempt, whose fd it has closed, tells alone how connect() went.
happy_step wait_for_orphan(core& c, pending_race& r, happy_connect& call, time_point now) {
  const int error = error_of_orphan(r, call);
  if (error != EINPROGRESS || now >= r.program_deadline)
    return settle(c, r, call, error == 0 ? 0 : -1, error);
  const bool told_already = call.fd_count == 1 && call.fds[0].revents != 0;  // an ICMP error
  call.fds[0] = {.fd = r.original_dup.get(), .events = POLLOUT, .revents = 0};
  call.fd_count = told_already ? 0 : 1;
  call.wait_ns = (std::min(now + look_again, r.program_deadline) - now).count();
  return HAPPY_STEP_POLL;
}

// What the worker would do.
happy_step drive(core& c, pending_race& r, happy_connect& call, time_point now) {
  const int error = named_error(r);
  if (!r.deaf) service_lookups(c, now);
  refresh_plan(c, r, now);
  const time_point next = advance(c, r, now);
  if (!r.used) return go_on_alone(call, error);
  if (r.won) return take_driven(c, r, call, now);
  if (r.lost) return settle(c, r, call, -1, named_error(r));
  if (now < r.program_deadline) return poll_until(r, call, next, now);
  return leave(c, r, call, own_is_under_way(call) ? EINPROGRESS : error,
               "the program's own timeout");
}

handlers kind_of(const happy_connect& call) { return static_cast<handlers>(call.handlers); }

// While the caller holds signals back those of the process go to other threads. The kernel asks the first thread first.
bool keeps_its_signals(const happy_connect& call) {
  return call.single_threaded != 0 || raw_gettid() != raw_getpid();
}

void note_handlers(happy_connect& call) {
  call.handlers = static_cast<int>(installed_handlers(call.signals));
}

// Which of both kinds of handlers has run nobody can tell afterwards: the signals are looked at while they wait.
bool may_drive(const happy_connect& call) {
  return kind_of(call) != handlers::mixed || keeps_its_signals(call);
}

// From here on the caller polls for the race. Which handlers the program has is known.
void take_charge(core& c, pending_race& r, happy_connect& call, stage as) {
  call.stage = as;
  call.quiet = may_drive(call) && kind_of(call) == handlers::mixed ? 1 : 0;
  call.timed = r.program_deadline != never ? 1 : 0;
  call.let_in = 0;
  call.restarted = 0;
  r.driven = r.active = true;
  r.deaf = may_be_in_handler(call.signals);
  count_pending(c);
}

happy_step begin_to_drive(core& c, pending_race& r, happy_connect& call, stage as, time_point now) {
  take_charge(c, r, call, as);
  return drive(c, r, call, now);
}

happy_step drive_without_named(core& c, pending_race& r, happy_connect& call, int error,
                               time_point now) {
  note_handlers(call);
  if (!may_drive(call)) return leave(c, r, call, error, "no worker");
  return begin_to_drive(c, r, call, stage_instead, now);
}

// Whether the program's own attempt is over, so that connect() tells at once how it went.
bool own_is_over(pending_race& r, const happy_connect& call, time_point now) {
  if (r.named_troubled) return !is_connecting(call.fd);
  const short events = call.fds[0].revents;
  if (events == 0) return false;
  if (events != POLLERR || !is_connecting(call.fd)) return true;
  r.named_troubled = true;  // poll() would say so again and again
  r.machine.handle({.what = race_event::kind::troubled, .where = r.named}, now);
  return false;
}

// The program's own attempt has failed: the others, if any, go on without it.
happy_step go_on_without_named(core& c, pending_race& r, happy_connect& call, int error,
                               time_point now) {
  fail_named(r, error, now);
  if (!r.active) {
    if (!adopt_original(r)) return leave(c, r, call, error, "the socket cannot be copied");
    r.active = true;
  }
  if (r.driven) return drive_without_named(c, r, call, error, now);
  refresh_plan(c, r, now);
  advance(c, r, now);
  if (!r.used) return give(call, -1, error);
  if (r.won) return take(c, r, call, now);
  if (r.lost) return settle(c, r, call, -1, error);
  switch (hand_to_worker(c, r, call, now)) {
    case handed::to_worker: return wait(r, call, now);
    case handed::to_nobody: return drive_without_named(c, r, call, error, now);
    case handed::ended: break;
  }
  return give(call, -1, error);
}

// The timed call has run out: from here on hidden attempts run beside the program's own.
happy_step open_the_race(core& c, pending_race& r, happy_connect& call, time_point now) {
  call.stage = stage_untimed;
  if (adopt_original(r)) {
    switch (hand_to_worker(c, r, call, now)) {
      case handed::to_worker: r.active = true; break;
      case handed::to_nobody:
        note_handlers(call);
        return begin_to_drive(c, r, call, stage_beside, now);
      case handed::ended: return HAPPY_STEP_CONNECT;
    }
  }
  limit_to_program_deadline(r, now);
  return HAPPY_STEP_CONNECT;  // without a dup the program's own attempt goes on alone
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
  if (error == EINTR && r.program_deadline == never && kind_of(call) == handlers::restarting) {
    note_handlers(call);
    return resume(c, r, call, now);
  }
  if (error == EINTR) return leave(c, r, call, error, "interrupted");
  return go_on_without_named(c, r, call, error, now);
}

// The host is not next door. Which handlers the program has is asked now, while the SYN travels. If only the kernel
// could say which one would interrupt a timed call, or another thread may close the fd under it (leave_alone()), the
// worker watches the time; where none can be made, the caller looks after its race from here on.
happy_step quiet_returned(core& c, pending_race& r, happy_connect& call, int error,
                          time_point now) {
  restore_send_timeout(r);
  call.quiet = 0;
  // No handler could run: EINTR is SIGSTOP's, which cannot be blocked.
  if (!ran_out(error) && error != EINTR) return go_on_without_named(c, r, call, error, now);
  note_handlers(call);
  if (kind_of(call) != handlers::mixed && call.single_threaded != 0) {
    call.stage = stage_timed;
    return resume(c, r, call, now);
  }
  call.stage = stage_untimed;
  limit_to_program_deadline(r, now);
  const handed to = hand_to_worker(c, r, call, r.active_from);
  if (to == handed::to_worker) r.driven = false;
  if (to != handed::to_nobody || !may_drive(call) || !adopt_original(r))
    return HAPPY_STEP_CONNECT;  // with a worker, or alone
  restore_send_timeout(r);
  return begin_to_drive(c, r, call, stage_beside, now);
}

// The program has closed the fd under its connect(), which has come back from the kernel.
happy_step orphan_returned(core& c, pending_race& r, happy_connect& call, int error,
                           time_point now) {
  restore_send_timeout(r);
  const bool goes_on = call.stage == stage_quiet && (ran_out(error) || error == EINTR);
  if (!goes_on) return settle(c, r, call, -1, error);
  note_handlers(call);
  take_charge(c, r, call, stage_beside);
  call.fd_count = 0;
  return wait_for_orphan(c, r, call, now);
}

happy_step untimed_returned(core& c, pending_race& r, happy_connect& call, int error,
                            time_point now) {
  restore_send_timeout(r);
  if (r.won) return take(c, r, call, now);
  if (r.lost) return settle(c, r, call, -1, named_error(r));
  if (ran_out(error)) return leave(c, r, call, error, "the program's own timeout");
  if (error == EINTR) return leave(c, r, call, error, "interrupted");
  return go_on_without_named(c, r, call, error, now);
}

happy_step go_on(core& c, pending_race& r, happy_connect& call, int error, time_point now) {
  switch (call.stage) {
    case stage_quiet: return quiet_returned(c, r, call, error, now);
    case stage_timed: return timed_returned(c, r, call, error, now);
    default: return untimed_returned(c, r, call, error, now);
  }
}

}  // namespace

void restore_send_timeout(pending_race& r, bool sure) {
  if (!r.borrowed_timeout) return;
  r.borrowed_timeout = false;
  if (!sure && r.original_dup.is_ours())
    set_send_timeout(r.original_dup.get(), r.program_timeout);
  else if (sure || socket_cookie(r.fd) == r.cookie)
    set_send_timeout(r.fd, r.program_timeout);
}

time_point program_deadline(const pending_race& r, time_point now) {
  if (is_zero(r.program_timeout)) return never;
  return now + std::chrono::seconds(r.program_timeout.tv_sec) +
         std::chrono::microseconds(r.program_timeout.tv_usec);
}

happy_step start_blocking(core& c, pending_race& r, happy_connect& call, time_point now) {
  const time_point delay_over = now + r.delay;
  r.program_deadline = program_deadline(r, now);
  call.stage = stage_untimed;
  if (call.single_threaded == 0) {
    switch (hand_to_worker(c, r, call, delay_over)) {
      case handed::to_worker: return HAPPY_STEP_CONNECT;
      case handed::to_nobody: break;
      case handed::ended: return HAPPY_STEP_PASS;
    }
    r.driven = true;
    count_pending(c);  // from here on the hook of close() says what it does
    if (!adopt_original(r)) {
      abandon(c, r, "the socket cannot be copied, or is another's by now");
      return HAPPY_STEP_PASS;
    }
    call.through = r.original_dup.get();
  }
  if (r.program_deadline <= delay_over) return HAPPY_STEP_CONNECT;  // no time for another attempt
  if (!set_send_timeout(r.fd, one_tick)) {
    call.through = 0;
    abandon(c, r, "the delay cannot be set");
    return HAPPY_STEP_PASS;
  }
  r.borrowed_timeout = true;
  r.active_from = delay_over;
  call.stage = stage_quiet;
  call.quiet = 1;
  return HAPPY_STEP_CONNECT;
}

happy_step blocking_returned(core& c, pending_race& r, happy_connect& call, int result, int error,
                             time_point now) {
  call.through = 0;
  if (result == 0) {
    restore_send_timeout(r, call.stage == stage_quiet && call.single_threaded != 0);
    if (r.published && r.won) return take(c, r, call, now);  // the original is shut down
    connect_named(c, r, now);
    return settle(c, r, call, 0, 0);
  }
  if (r.orphaned) return orphan_returned(c, r, call, error, now);
  const bool decided = r.won || r.lost;
  if (!ran_out(error) && error != EINTR && !decided && !is_endpoint_failure(error))
    return leave(c, r, call, error, "not an endpoint's failure");
  const bool timed = r.program_deadline != never;
  const happy_step next = go_on(c, r, call, error, now);
  // What is one call to the program is about to go on with another one: a signal that has come in between would
  // have its handler run, and interrupt nothing.
  if (next == HAPPY_STEP_RESULT || !interrupts(due_signals(call.signals), timed)) return next;
  pending_race* still = c.races.find(call.record, call.generation);
  if (still == nullptr) return give(call, -1, EINTR);
  return leave(c, *still, call, EINTR, "interrupted");
}

// Whether a signal has ended the call that the program made. Of a quiet one the others are let in before the next poll().
bool is_interrupted(happy_connect& call, int error) {
  if (call.quiet == 0) {
    const bool handled = error == EINTR;
    call.restarted = handled ? 1 : 0;
    return handled && (call.timed != 0 || kind_of(call) != handlers::restarting);
  }
  call.restarted = interrupts(call.let_in, true) ? 1 : 0;
  call.let_in = due_signals(call.signals);
  return interrupts(call.let_in, call.timed != 0);
}

happy_step connect_polled(core& c, happy_connect& call, int error) {
  const bool interrupted = is_interrupted(call, error);
  const patient_guard guard(c, patience_to_end);
  pending_race* r = guard ? c.races.find(call.record, call.generation) : nullptr;
  if (r == nullptr) return interrupted ? give(call, -1, EINTR) : go_on_alone(call, call.error);
  if (interrupted) return leave(c, *r, call, EINTR, "interrupted");
  const time_point now = clock_now();
  if (r->orphaned) return wait_for_orphan(c, *r, call, now);
  if (own_is_under_way(call)) {
    const bool is_over = !r->taken_back && error == 0 && own_is_over(*r, call, now);
    if (r->taken_back || (is_over && is_taken_back(*r)))
      return leave(c, *r, call, take_own_error(*r), "the program has taken it back");
    if (is_over) {
      call.stage = stage_untimed;
      return HAPPY_STEP_CONNECT;
    }
  }
  for (nfds_t i = 0; error == 0 && i < call.fd_count; ++i) {
    if (call.fds[i].revents != 0) report_attempt(*r, call.fds[i].fd, now);
  }
  return drive(c, *r, call, now);
}

happy_step connect_woken(core& c, happy_connect& call, int error) {
  const patient_guard guard(c, patience_to_end);
  if (!guard) return give(call, -1, call.error);
  pending_race* r = c.races.find(call.record, call.generation);
  if (r == nullptr) return give(call, -1, call.error);
  const int first_error = named_error(*r);
  if (r->won) return take(c, *r, call, clock_now());
  if (r->lost) return settle(c, *r, call, -1, first_error);
  if (error == EINTR) return leave(c, *r, call, EINTR, "interrupted");
  if (error == ETIMEDOUT) return leave(c, *r, call, first_error, "the program's own timeout");
  return wait(*r, call, clock_now());
}

void disconnecting(core& c, int fd) {
  const patient_guard guard(c, patience_to_begin);
  const std::uint64_t cookie = guard ? socket_cookie(fd) : 0;
  if (cookie == 0) return;
  c.races.for_each_used([&](pending_race& r) {
    if (!r.non_blocking && r.driven && r.cookie == cookie) r.taken_back = true;
  });
}

void blocking_left(core& c, pending_race& r) { abandon(c, r, "the caller has left"); }

}  // namespace happy
