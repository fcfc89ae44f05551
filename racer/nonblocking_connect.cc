#include "racer/nonblocking_connect.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>

#include "racer/connect_call.h"
#include "racer/handover.h"
#include "racer/history_notes.h"
#include "racer/noted_registrations.h"
#include "racer/open_files.h"
#include "racer/progress.h"
#include "racer/veiled_connect.h"
#include "resolver/clock.h"
#include "shim/base/handler_sign.h"

namespace happy {
namespace {

// How often the program's own sockets are looked at while hidden attempts run, and how long a thread
// waits at a time for a socket that may be replaced under it.
constexpr duration look_again = milliseconds(10);

// A program that gives every address so long and no longer (node) closes one socket and makes the next. For
// this time the hidden attempts that are under way wait for it; none is started.
constexpr duration until_the_next = milliseconds(10);

enum class socket_state : std::uint8_t { connecting, connected, failed, gone };

// Asks without taking anything away from the program: SO_ERROR would be cleared by reading it.
socket_state state_of(const program_socket& s) {
  if (socket_cookie(s.fd) != s.cookie) return socket_state::gone;
  const int state = tcp_state(s.fd);
  if (state == no_tcp_state) return socket_state::gone;
  if (is_handshake(state)) return socket_state::connecting;
  return state == TCP_CLOSE ? socket_state::failed : socket_state::connected;
}

// The program has its connection on that socket.
void serve(core& c, pending_race& r, std::uint64_t cookie, const char* how, time_point now) {
  finish_lookup(c, r.lookup);
  for (std::size_t i = r.sockets.size(); i-- > 0;) {
    if (r.sockets[i].cookie == cookie) r.sockets.erase(i);
  }
  if (r.sockets.empty() || r.veiled != 0 || r.swap) return abandon(c, r, how);
  begin_again(c, r, now);
}

void succeed(core& c, pending_race& r, const program_socket& s, time_point now) {
  note_own_success(c, r, s.where, now);
  trace_race_endpoint("winner", r, s.where);
  serve(c, r, s.cookie, "the program's own attempt has connected", now);
}

// Looks at the program's sockets. False: the race is over.
bool look_at_sockets(core& c, pending_race& r, time_point now) {
  for (std::size_t i = r.sockets.size(); i-- > 0;) {
    const program_socket s = r.sockets[i];
    switch (state_of(s)) {
      case socket_state::connecting: break;
      case socket_state::connected:
        succeed(c, r, s, now);
        if (!r.used) return false;
        break;
      case socket_state::failed:
        trace_failure(r, s.where, 0);
        if (s.cookie == r.veiled) take_what_arrives(s.fd);  // the program has shut it down
        r.machine.handle({.what = race_event::kind::failed, .where = s.where}, now);
        r.sockets.erase(i);
        break;
      case socket_state::gone: r.sockets.erase(i); break;
    }
  }
  if (!r.sockets.empty()) return true;
  abandon(c, r, "no socket of the program's is left");
  return false;
}

// Attempts are made in the likeness of this socket from here on, and the one before is let go.
bool lean_on(pending_race& r, const program_socket& s) {
  r.fd = s.fd;
  r.cookie = s.cookie;
  r.original.socket_family = s.where.address.family;
  return adopt_original(r);
}

// A socket that the program has closed must not live on in our hands, and go on sending.
void let_go(core& c, pending_race& r, std::uint64_t cookie, time_point now) {
  if (!r.sockets.empty()) {
    if (r.active && r.original_dup.cookie() == cookie && !lean_on(r, r.sockets[0])) {
      abandon(c, r, "the socket cannot be copied");
    }
    return;
  }
  if (r.attempts.empty() || r.swap || r.won) return abandon(c, r, "the program closed the fd");
  r.original_dup.reset();
  r.forgotten_at = now + until_the_next;
  count_pending(c);
}

// The socket that a winner of family `f` replaces: one of its family, else the first.
const program_socket& target_for(const pending_race& r, family f) {
  const auto same = std::find_if(r.sockets.begin(), r.sockets.end(), [&](const program_socket& s) {
    return s.where.address.family == f;
  });
  return same == r.sockets.end() ? r.sockets[0] : *same;
}

// Whether the winner may lack options of the socket: it was made for another, or the program has set some since. To ask
// which there are takes a third of a hand-over's calls.
bool may_have_other_options(const core& c, const pending_race& r) {
  const happy_pending& pending = *c.host.pending;
  return r.winner_options.from != r.cookie ||
         __atomic_load_n(&pending.option_changes, __ATOMIC_SEQ_CST) != r.winner_options.changes ||
         __atomic_load_n(&pending.uses_io_uring, __ATOMIC_RELAXED) != 0;
}

bool make_alike(const core& c, const pending_race& r, family original) {
  const int winner = r.winner_socket.get();
  const family f = r.winner.address.family;
  return (!may_have_other_options(c, r) ||
          digest_options(r.original.fd, original) == r.winner_options.digest ||
          copy_options(r.original.fd, original, winner, f, r.original.early).ok()) &&
         copy_file_state(r.original.fd, original, winner, f);
}

// The winner's socket is put in its place; poll() and select() of the program wake by the shutdown of the
// original, look the number up again, and see the new socket.
void deliver(core& c, pending_race& r, time_point now) {
  const program_socket target = target_for(r, r.winner.address.family);
  if (!lean_on(r, target)) return abandon(c, r, "the fd cannot be replaced");
  if (!make_alike(c, r, target.where.address.family) || !hand_over(r)) {
    if (has_connected(r.original.fd)) return succeed(c, r, target, now);
    return abandon(c, r, "the fd cannot be replaced");
  }
  real->shutdown(r.original.fd, SHUT_RDWR);
  r.veiled = 0;
  serve(c, r, target.cookie, "handed over", now);
}

void activate(core& c, pending_race& r, time_point now) {
  if (r.active || now < r.active_from) return;
  if (!lean_on(r, r.sockets[0])) return abandon(c, r, "the socket cannot be copied");
  r.active = c.races.reserve(r, r.original_dup.get(), now);
  if (!r.active) r.original_dup.reset();
}

// Where a hidden attempt stands for the program's own, its failure is the program's too: the failed socket
// itself is handed over, its error unread.
bool has_failure_to_show(const pending_race& r) { return r.lost && r.winner_socket.valid(); }

// HAPPY_FORCE=swap: where connect() itself has read the error of the hidden attempt (a closed port of the loopback),
// the program's own attempt is to meet it too. Without its mark the next
// repetition of its SYN gets through, a second after the first.
void let_original_through(const pending_race& r) {
  const int mark = r.original.early.mark;
  if (socket_cookie(r.fd) == r.cookie)
    real->setsockopt(r.fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark);
}

// The program has come to an endpoint that a hidden attempt is trying: the socket of that attempt becomes
// the program's, and no endpoint gets two SYNs. From then on it is one of the program's own.
bool take_attempt(pending_race& first, pending_race& r) {
  const auto a = std::find_if(first.attempts.begin(), first.attempts.end(),
                              [&](const hidden_attempt& x) { return x.where == r.named; });
  if (a == first.attempts.end() || first.won || !a->socket.is_ours()) return false;
  if (r.original.bound || first.original.bound || r.original.protocol != first.original.protocol) {
    return false;
  }
  const family f = r.named.address.family;
  if (!adopt_original(r) ||
      !copy_options(r.original.fd, f, a->socket.get(), f, r.original.early).ok()) {
    return false;
  }
  if (!copy_file_state(r.original.fd, f, a->socket.get(), f)) return false;
  r.winner_socket = std::move(a->socket);
  first.attempts.erase(static_cast<std::size_t>(a - first.attempts.begin()));
  return hand_over(r);
}

// One more socket of the program's. False: there are too many, or the race has ended.
bool welcome(core& c, pending_race& r, const program_socket& s) {
  if (!r.sockets.push_back(s)) return false;
  if (r.forgotten_at == never) return true;
  r.forgotten_at = never;
  count_pending(c);
  if (lean_on(r, s)) return true;
  abandon(c, r, "the socket cannot be copied");
  return false;
}

// What a hand-over asks of /proc the kernel prepares when it is first asked for, which takes longer than all the rest
// (100 of 220 us, measured). Here nobody waits for it.
void rehearse(core& c, const pending_race& r) {
  if (c.has_rehearsed || r.driven) return;
  c.has_rehearsed = true;
  can_hand_over(r);
}

template <typename Function>
pending_race* find_non_blocking(core& c, Function&& matches) {
  pending_race* found = nullptr;
  c.races.for_each_used([&](pending_race& r) {
    if (r.non_blocking && matches(r)) found = &r;
  });
  return found;
}

bool covers(unsigned first, unsigned last, int fd) {
  const auto number = static_cast<unsigned>(fd);
  return first <= number && number <= last;
}

// A veiled socket lives on where somebody else has it, and would show a handshake for ever: a copy in this process is
// looked after in its place, and a relative's gets an attempt of its own. True: it has been.
bool leave_veil_to_copy(pending_race& r, program_socket& s, unsigned first, unsigned last) {
  if (r.veiled != s.cookie || socket_cookie(s.fd) != s.cookie) return false;
  if (!is_connecting(s.fd)) {
    take_what_arrives(s.fd);  // disconnected, and perhaps used again
    return false;
  }
  fd_list numbers;
  find_aliases(s.fd, r.original_dup.get(), numbers);
  for (const int number : numbers) {
    if (covers(first, last, number)) continue;
    if (r.fd == s.fd) r.fd = number;
    s.fd = number;
    return true;
  }
  if (is_shared_with_relatives(s.fd, r.thread)) lift_veil(r);
  return false;
}

bool waits_for_socket_of(const pending_race& r, const int* fds, unsigned count) {
  return std::any_of(r.sockets.begin(), r.sockets.end(), [&](const program_socket& s) {
    return fds == nullptr || std::find(fds, fds + count, s.fd) != fds + count;
  });
}

bool survives_exec(int number) {
  const int flags = real->fcntl(number, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

// Only what shows nothing: any other socket of a race is as it would be bare.
bool has_veil_that_survives_exec(const pending_race& r) {
  return r.veiled != 0 &&
         std::any_of(r.sockets.begin(), r.sockets.end(), [&](const program_socket& s) {
           fd_list numbers;
           return s.cookie == r.veiled && find_aliases(s.fd, r.original_dup.get(), numbers) &&
                  std::any_of(numbers.begin(), numbers.end(), survives_exec);
         });
}

// The numbers `first` to `last` show the race's sockets no more.
void let_go_of(core& c, pending_race& r, unsigned first, unsigned last, time_point now) {
  for (std::size_t i = r.sockets.size(); r.used && i-- > 0;) {
    const program_socket s = r.sockets[i];
    if (!covers(first, last, s.fd) || leave_veil_to_copy(r, r.sockets[i], first, last)) continue;
    if (r.sockets.size() > 1 && state_of(s) == socket_state::connected) {
      succeed(c, r, s, now);  // used already, and done with
      continue;
    }
    r.sockets.erase(i);
    let_go(c, r, s.cookie, now);
  }
}

// A socket of another thread that is inside connect() goes on alone. (That of this one is inside no other call.)
bool can_be_left_alone(const pending_race& r) { return (r.armed || r.driven) && !r.published; }

bool holds(const pending_race& r, std::uint64_t cookie) {
  if (!r.non_blocking) return r.cookie == cookie && can_be_left_alone(r);
  return std::any_of(r.sockets.begin(), r.sockets.end(),
                     [&](const program_socket& s) { return s.cookie == cookie; });
}

bool holds_one_of(const pending_race& r, const int* fds, unsigned count) {
  return std::any_of(fds, fds + count, [&](int fd) {
    const std::uint64_t cookie = socket_cookie(fd);
    return cookie != 0 && holds(r, cookie);
  });
}

// The delay has passed: the worker moves the race on from here, or, where there is none, the program's own
// waiting calls. False: the race has ended meanwhile.
bool give_to_somebody(core& c, pending_race& r, std::uint64_t signals) {
  const std::uint32_t generation = r.generation;
  r.clocked = false;
  r.armed = true;
  const bool engaged = c.hidden_worker.engage(c, {r.single_threaded, signals, &r});
  if (r.generation != generation) return false;
  r.driven = !engaged;
  return true;
}

// What the worker would do. The time at which it wants to be done again. No second try is made to have a worker:
// whoever could ask for one is here to do its work, and a thread that cannot be made costs more than that.
time_point drive_non_blocking(core& c, pending_race& r, std::uint64_t signals, time_point now) {
  r.deaf = may_be_in_handler(signals);  // this call; the next one may be none of a handler's
  for (std::size_t i = r.attempts.size(); !r.won && i-- > 0;) {
    report_attempt(r, r.attempts[i].socket.get(), now);
  }
  if (!r.deaf) service_lookups(c, now);
  const time_point next = tend_non_blocking(c, r, now);
  return r.used ? std::min(next, now + look_again) : never;
}

}  // namespace

bool is_pending(core& c, std::uint64_t cookie) {
  return cookie != 0 &&
         find_non_blocking(c, [&](const pending_race& r) {
           return std::any_of(r.sockets.begin(), r.sockets.end(),
                              [&](const program_socket& s) { return s.cookie == cookie; });
         }) != nullptr;
}

namespace {

// What is made in the likeness of one comes from where the other was bound to, by its protocol.
bool are_alike(const original_socket& a, const original_socket& b) {
  return a.protocol == b.protocol && a.bound == b.bound && (!a.bound || a.local == b.local);
}

// Options set on a connected socket lead it nowhere else.
bool goes_the_same_way(const pending_race& earlier, const pending_race& r) {
  const bool of_program = !earlier.sockets.empty();
  if (!of_program && earlier.attempts.empty()) return true;
  const int fd = of_program ? earlier.sockets[0].fd : earlier.attempts[0].socket.get();
  const endpoint& where = of_program ? earlier.sockets[0].where : earlier.attempts[0].where;
  return have_same_route(fd, where.address.family, r.fd, r.original.socket_family);
}

}  // namespace

// A program that has a socket on its way to the same endpoint already wants another connection, and races for it
// anew.
pending_race* find_race_to_join(core& c, const pending_race& r) {
  const auto is_joinable = [&](const pending_race& earlier) {
    return &earlier != &r && !earlier.swap && !earlier.on_their_own && earlier.thread == r.thread &&
           r.known.id != 0 && earlier.known.id == r.known.id && earlier.port == r.port &&
           are_alike(earlier.original, r.original) &&
           std::none_of(earlier.sockets.begin(), earlier.sockets.end(),
                        [&](const program_socket& s) { return s.where == r.named; }) &&
           goes_the_same_way(earlier, r);
  };
  // One that waits for its next socket goes first.
  pending_race* waiting = find_non_blocking(c, [&](const pending_race& earlier) {
    return earlier.forgotten_at != never && is_joinable(earlier);
  });
  if (waiting != nullptr) return waiting;
  return find_non_blocking(c, [&](const pending_race& earlier) {
    return !earlier.sockets.empty() && is_joinable(earlier);
  });
}

happy_step join(core& c, pending_race& first, pending_race& r, happy_connect& call,
                time_point now) {
  const endpoint named = r.named;
  if (!first.sockets.full() && take_attempt(first, r)) {
    trace_race_endpoint("taken over", first, named);
    const program_socket taken{r.fd, socket_cookie(r.fd), named};
    c.races.release(r);
    welcome(c, first, taken);
    return give(call, -1, EINPROGRESS);
  }
  const program_socket joining{r.fd, r.cookie, named};
  c.races.release(r);
  if (!welcome(c, first, joining)) return pass(call, named, "too many sockets in one race");
  trace_race_endpoint("joined", first, named);
  first.machine.note_started(named, now);
  first.active_from = std::max(first.active_from, now + first.delay);
  call.record = first.index;
  call.generation = first.generation;
  call.stage = stage_joined;
  return HAPPY_STEP_CONNECT;
}

happy_step pending_returned(core& c, pending_race& r, happy_connect& call, int result, int error,
                            time_point now) {
  if (result == 0) {
    connect_named(c, r, now);
    return settle(c, r, call, 0, 0);
  }
  if (error != EINPROGRESS) {
    if (is_endpoint_failure(error)) trace_failure(r, r.named, error);
    return settle(c, r, call, -1, error);
  }
  r.sockets.push_back({r.fd, r.cookie, r.named});
  r.active_from = now + r.delay;
  // Suites may connect to a server of their own thread and wait in accept().
  r.clocked = r.single_threaded && !r.swap;
  if (!r.clocked) {
    const handed outcome = hand_to_worker(c, r, call, r.active_from);
    if (outcome == handed::ended) return give(call, result, error);
    r.clocked = outcome == handed::to_nobody;
  }
  count_pending(c);
  return give(call, -1, EINPROGRESS);
}

happy_step joined_returned(core& c, pending_race& r, happy_connect& call, int result, int error,
                           time_point now) {
  const auto s = std::find_if(r.sockets.begin(), r.sockets.end(),
                              [&](const program_socket& x) { return x.fd == call.fd; });
  if (s == r.sockets.end()) return give(call, result, error);
  const endpoint where = s->where;
  if (result == 0) {
    succeed(c, r, program_socket(*s), now);
  } else if (error != EINPROGRESS) {
    r.sockets.erase(static_cast<std::size_t>(s - r.sockets.begin()));
    r.machine.handle({.what = race_event::kind::failed, .where = where}, now);
  }
  return give(call, result, error);
}

time_point tend_non_blocking(core& c, pending_race& r, time_point now) {
  if (!r.armed) return never;
  if (r.forgotten_at != never) {
    if (now < r.forgotten_at) return r.forgotten_at;
    abandon(c, r, "the program closed the fd");
    return never;
  }
  const time_point active_from = std::max(r.active_from, c.races.full_until());
  if (now < active_from && !r.active) return active_from;
  if (!look_at_sockets(c, r, now)) return never;
  activate(c, r, now);
  if (!r.used) return never;
  if (!r.active) return std::max(r.active_from, c.races.full_until());
  refresh_plan(c, r, now);
  const time_point next = r.won || r.lost ? never : advance(c, r, now);
  if (!r.used) return never;
  if (r.won || has_failure_to_show(r)) {
    deliver(c, r, now);
    return r.used ? r.active_from : never;
  }
  if (r.lost) {
    if (r.swap) let_original_through(r);
    abandon(c, r, "every endpoint has failed");
    return never;
  }
  rehearse(c, r);
  return std::min(next, now + look_again);
}

void fds_closing(core& c, unsigned first, unsigned last) {
  const patient_guard guard(c, patience_to_begin);
  if (!guard) return;  // the cookie will tell
  const time_point now = clock_now();
  c.races.for_each_used([&](pending_race& r) {
    if (r.non_blocking)
      let_go_of(c, r, first, last, now);
    else if (can_be_left_alone(r) && covers(first, last, r.fd))
      leave_alone(c, r);
  });
}

void connecting_anew(core& c, int fd) {
  const patient_guard guard(c, patience_to_begin);
  if (!guard) return;
  const time_point now = clock_now();
  const auto number = static_cast<unsigned>(fd);
  c.races.for_each_used([&](pending_race& r) {
    if (r.non_blocking) let_go_of(c, r, number, number, now);
  });
}

void fds_leaving(core& c, const int* fds, unsigned count) {
  const patient_guard guard(c, patience_to_begin);
  if (!guard) return;
  c.races.for_each_used([&](pending_race& r) {
    const bool leaves =
        fds == nullptr ? has_veil_that_survives_exec(r) : holds_one_of(r, fds, count);
    if (leaves) abandon(c, r, "another program gets the socket");
  });
  count_pending(c);
}

std::int64_t wait_limit(core& c, const int* fds, unsigned count, std::uint64_t signals) {
  const patient_guard guard(c, patience_to_begin);
  if (!guard) return -1;
  const time_point now = clock_now();
  time_point limit = never;
  c.races.for_each_used([&](pending_race& r) {
    if (!r.non_blocking) return;
    if (r.clocked && now >= r.active_from && !give_to_somebody(c, r, signals)) return;
    if (r.driven) limit = std::min(limit, drive_non_blocking(c, r, signals, now));
    if (r.clocked) limit = std::min(limit, r.active_from);
    if (r.armed && waits_for_socket_of(r, fds, count)) limit = std::min(limit, now + look_again);
  });
  count_pending(c);
  return limit == never ? -1 : std::max<std::int64_t>((limit - now).count(), 0);
}

int change_epoll(core& c, int set, int operation, int fd, epoll_event* event) {
  const patient_guard guard(c, patience_to_begin);
  const int before = c.host.set_inside(0);  // the program's own call: not one that tests let fail
  const int result = real->epoll_ctl(set, operation, fd, event);
  c.host.set_inside(before);
  if (result == 0 && guard) {
    know_proc(c);  // no longer in doubt
    note_registration(set, operation, fd, event);
  }
  return result;
}

void count_pending(core& c) {
  std::uint32_t races = 0;
  std::uint32_t clocked = 0;
  c.races.for_each_used([&](const pending_race& r) {
    if (r.non_blocking ? r.sockets.empty() : !r.armed && !r.driven) return;
    ++races;
    if (r.clocked || (r.non_blocking && r.driven)) ++clocked;
  });
  __atomic_store_n(&c.host.pending->races, races, __ATOMIC_RELEASE);
  __atomic_store_n(&c.host.pending->clocked, clocked, __ATOMIC_RELEASE);
}

}  // namespace happy
