#include "racer/blocking_connect.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>

#include "racer/caller.h"
#include "racer/handover.h"
#include "racer/hinted.h"
#include "racer/progress.h"
#include "racer/race_trace.h"
#include "racer/signal_handlers.h"
#include "resolver/clock.h"
#include "shim/base/raw_syscall.h"

namespace happy {
namespace {

// happy_connect::stage
enum stage : int {
  stage_timed,    // the fd's SO_SNDTIMEO carries the delay
  stage_untimed,  // the kernel alone ends the call (or the program's own SO_SNDTIMEO)
};

happy_step give(happy_connect& call, int result, int error) {
  call.result = result;
  call.error = error;
  return HAPPY_STEP_RESULT;
}

happy_step pass(const happy_connect& call, const endpoint& named, const char* reason) {
  trace_connect_pass(call.fd, named, reason);
  return HAPPY_STEP_PASS;
}

timeval to_timeval(duration d) {
  const auto us = std::chrono::ceil<std::chrono::microseconds>(d).count();
  return {.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
}

bool is_zero(const timeval& t) { return t.tv_sec == 0 && t.tv_usec == 0; }

bool set_send_timeout(int fd, const timeval& value) {
  return real->setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value) == 0;
}

// The program's own SO_SNDTIMEO, or with a deadline under way what is left of it.
void restore_send_timeout(pending_race& r) {
  if (!r.borrowed_timeout) return;
  r.borrowed_timeout = false;
  if (socket_cookie(r.fd) == r.cookie) set_send_timeout(r.fd, r.program_timeout);
}

// connect() counts SO_SNDTIMEO from its own start: a later call on the same fd gets the rest.
void limit_to_program_deadline(pending_race& r, time_point now) {
  if (r.program_deadline == never) return;
  const duration left = std::max(r.program_deadline - now, duration(std::chrono::microseconds(1)));
  r.borrowed_timeout = set_send_timeout(r.fd, to_timeval(left));
}

template <typename Value>
bool read_socket(int fd, int level, int name, Value& value) {
  socklen_t length = sizeof value;
  return real->getsockopt(fd, level, name, &value, &length) == 0;
}

bool is_blocking_stream(int fd) {
  int type = 0;
  if (!read_socket(fd, SOL_SOCKET, SO_TYPE, type) || type != SOCK_STREAM) return false;
  const int flags = real->fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

// Whether an earlier call of this thread will still come back: only if the present one runs in a signal
// handler on top of it.
bool may_come_back(const pending_race& earlier, const happy_connect& call) {
  if (socket_cookie(earlier.fd) != earlier.cookie)
    return false;  // nobody closes a socket in mid-call
  return is_below(&call, earlier.frame);
}

// A thread can be in one connect() only: an earlier call that did not return was left by siglongjmp().
void drop_abandoned(core& c, const happy_connect& call, pid_t thread) {
  c.races.for_each_used([&](pending_race& r) {
    if (r.thread != thread || may_come_back(r, call)) return;
    restore_send_timeout(r);
    abandon(c, r, "the caller has left");
  });
}

// Two threads in connect() on one socket: the kernel gives both its result, a race could serve only one.
bool is_connecting_elsewhere(core& c, const pending_race& r) {
  bool found = false;
  c.races.for_each_used([&](pending_race& earlier) {
    if (&earlier == &r || earlier.cookie != r.cookie || earlier.published) return;
    found = true;
    restore_send_timeout(earlier);
    abandon(c, earlier, "two threads connect one socket");
  });
  return found;
}

// Why this socket's connect() is left alone; nullptr: it can be raced. Fills in what is read.
const char* judge_socket(pending_race& r) {
  int type = 0;
  if (!read_socket(r.fd, SOL_SOCKET, SO_TYPE, type) || type != SOCK_STREAM)
    return "not a stream socket";
  int& protocol = r.original.protocol;
  if (!read_socket(r.fd, SOL_SOCKET, SO_PROTOCOL, protocol)) return "not a socket";
  if (protocol != IPPROTO_TCP && protocol != IPPROTO_MPTCP) return "not TCP";
  int domain = 0;
  if (!read_socket(r.fd, SOL_SOCKET, SO_DOMAIN, domain)) return "not a socket";
  r.original.socket_family = domain == AF_INET ? family::ipv4 : family::ipv6;
  if (r.original.socket_family != r.named.address.family)
    return "address and socket of two families";
  const int flags = real->fcntl(r.fd, F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) != 0) return "non-blocking";

  socket_address local;
  local.length = sizeof local.storage;
  endpoint bound;
  if (real->getsockname(r.fd, local.get(), &local.length) != 0 ||
      !from_sockaddr(local.get(), local.length, bound)) {
    return "no local address";
  }
  if (bound.port != 0) return "bound to a local port";
  r.original.local = bound.address;
  r.original.bound = bound.address.bytes != address{}.bytes;

  read_socket(r.fd, IPPROTO_TCP, TCP_MAXSEG, r.original.early.maximum_segment);
  read_socket(r.fd, SOL_SOCKET, SO_SNDTIMEO, r.program_timeout);
  r.original.early.send_timeout = r.program_timeout;
  r.cookie = socket_cookie(r.fd);
  return r.cookie == 0 ? "no socket cookie" : nullptr;
}

// Nothing but the named endpoint to try, now or later.
bool is_single(core& c, const pending_race& r, time_point now) {
  if (lookup_is_open(c, r.lookup, now)) return false;
  return r.known.candidates.size() == 1;
}

void describe(core& c, pending_race& r, const happy_connect& call, const endpoint& named,
              pid_t thread, time_point now) {
  r.id = ++c.last_id;
  r.fd = call.fd;
  r.thread = thread;
  r.frame = &call;
  r.named = named;
  r.port = named.port;
  r.began = now;
  r.delay = c.timing.delay();
  r.machine = race(c.timing);
}

// HAPPY_FORCE=swap: the program's own attempt gets a firewall mark and a name of its own in the state
// machine; the address that it named is left to a hidden attempt, as soon as that may start.
bool describe_swap(pending_race& r) {
  const candidate only{.destination = r.named.address};
  r.known.id = 0;
  r.known.candidates.clear();
  r.known.candidates.push_back(only);
  r.named = {.address = {.family = only.destination.family}, .port = 0};
  const race_timing at_once{.attempt_delay = attempt_floor, .minimum_delay = attempt_floor};
  r.delay = at_once.delay();
  r.machine = race(at_once);
  r.swap = true;
  const std::uint32_t mark = HAPPY_SWAP_MARK;
  return read_socket(r.fd, SOL_SOCKET, SO_MARK, r.original.early.mark) &&
         real->setsockopt(r.fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) == 0;
}

// The worker takes over: at once (`from` = now) or when the time has come.
bool hand_to_worker(core& c, pending_race& r, const happy_connect& call, time_point from) {
  r.armed = true;
  r.active_from = from;
  return c.hidden_worker.engage(c, call.single_threaded != 0);
}

// The first CONNECT, with the delay on the caller's own clock or on the worker's.
happy_step start(core& c, pending_race& r, happy_connect& call, time_point now) {
  advance_to_named(c, r, now);
  const time_point delay_over = now + r.delay;
  if (!is_zero(r.program_timeout)) {
    r.program_deadline = now + std::chrono::seconds(r.program_timeout.tv_sec) +
                         std::chrono::microseconds(r.program_timeout.tv_usec);
  }
  const bool alone = call.single_threaded != 0;
  call.stage = stage_untimed;
  if (alone && r.program_deadline <= delay_over)
    return HAPPY_STEP_CONNECT;  // no time for another attempt
  if (alone && installed_handlers() != handlers::mixed &&
      set_send_timeout(r.fd, to_timeval(r.delay))) {
    r.borrowed_timeout = true;
    r.active_from = delay_over;
    call.stage = stage_timed;
    return HAPPY_STEP_CONNECT;
  }
  if (!hand_to_worker(c, r, call, delay_over)) {
    abandon(c, r, "no worker");
    return HAPPY_STEP_PASS;
  }
  return HAPPY_STEP_CONNECT;
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
  if (!hand_over(r)) return leave(c, r, call, error, "the program replaced the fd");
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

happy_step connect_begin(core& c, happy_connect& call) {
  endpoint named;
  if (!from_sockaddr(call.to, call.length, named)) return HAPPY_STEP_PASS;
  const pid_t thread = raw_gettid();
  if (is_blocking_stream(call.fd)) follow_hint(c, call, named);
  core_guard guard(c);
  const time_point now = clock_now();
  drop_abandoned(c, call, thread);

  pending_race* r = c.races.acquire();
  if (r == nullptr) return pass(call, named, "too many races");
  const auto give_up = [&](const char* reason) {
    c.races.release(*r);
    return pass(call, named, reason);
  };
  describe(c, *r, call, named, thread, now);
  const bool swap = (c.host.settings->force & HAPPY_FORCE_SWAP) != 0;
  if (swap) {
    if (const char* reason = judge_socket(*r)) return give_up(reason);
    if (!describe_swap(*r)) return give_up("no mark can be set");
    call.record = r->index;
    call.generation = r->generation;
    return start(c, *r, call, now);
  }
  if (!c.intents.find(named.address, thread, now, r->known)) return give_up("address of no lookup");
  r->lookup = lookup_is_open(c, r->known.id, now) ? r->known.id : 0;
  const int known_error = c.intents.take_failure(named, thread, now);
  if (known_error == 0 && is_single(c, *r, now)) return give_up("single address");
  if (const char* reason = judge_socket(*r)) return give_up(reason);
  if (is_connecting_elsewhere(c, *r)) return give_up("two threads connect one socket");
  if (known_error != 0) {
    trace_failure(*r, named, known_error);
    return settle(c, *r, call, -1, known_error);
  }
  call.record = r->index;
  call.generation = r->generation;
  return start(c, *r, call, now);
}

happy_step connect_returned(core& c, happy_connect& call, int result, int error) {
  core_guard guard(c);
  pending_race* r = c.races.find(call.record, call.generation);
  if (r == nullptr) return give(call, result, error);
  const time_point now = clock_now();
  if (result == 0) {
    restore_send_timeout(*r);
    if (r->published && r->won) return take(c, *r, call);  // the original is shut down
    connect_named(c, *r, now);
    return settle(c, *r, call, 0, 0);
  }
  if (!ran_out(error) && error != EINTR && !(r->won) && !is_endpoint_failure(error)) {
    restore_send_timeout(*r);
    return leave(c, *r, call, error, "not an endpoint's failure");
  }
  return call.stage == stage_timed ? timed_returned(c, *r, call, error, now)
                                   : untimed_returned(c, *r, call, error, now);
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

void connect_left(core& c, happy_connect& call) {
  core_guard guard(c);
  pending_race* r = c.races.find(call.record, call.generation);
  if (r == nullptr) return;
  restore_send_timeout(*r);
  abandon(c, *r, "cancelled");
}

}  // namespace happy
