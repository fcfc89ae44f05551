// Which calls of connect() are raced, and their first step.

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "racer/blocking_connect.h"
#include "racer/caller.h"
#include "racer/connect_call.h"
#include "racer/hinted.h"
#include "racer/nonblocking_connect.h"
#include "racer/progress.h"
#include "racer/synthesis.h"
#include "racer/veiled_connect.h"
#include "resolver/clock.h"
#include "shim/base/raw_syscall.h"

namespace happy {
namespace {

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
    if (r.thread != thread || r.non_blocking || may_come_back(r, call)) return;
    abandon(c, r, "the caller has left");
  });
}

// Two threads in connect() on one socket: the kernel gives both its result, a race could serve only one.
bool is_connecting_elsewhere(core& c, std::uint64_t cookie) {
  bool found = false;
  c.races.for_each_used([&](pending_race& earlier) {
    if (earlier.cookie != cookie || earlier.non_blocking || earlier.published) return;
    found = true;
    if (earlier.taken_back) return leave_alone(c, earlier);
    abandon(c, earlier, "two threads connect one socket");
  });
  return found;
}

// Why this socket's connect() is left alone; nullptr: it can be raced. Fills in what is read.
const char* judge_socket(pending_race& r, const happy_connect& call) {
  int& protocol = r.original.protocol;
  if (!read_socket(r.fd, SOL_SOCKET, SO_PROTOCOL, protocol)) return "not a socket";
  if (protocol != IPPROTO_TCP && protocol != IPPROTO_MPTCP) return "not TCP";
  // A raw socket for TCP packets has no such option; an older kernel's MPTCP socket has none either.
  int type = 0;
  if (!read_socket(r.fd, IPPROTO_TCP, TCP_MAXSEG, r.original.early.maximum_segment) &&
      !(read_socket(r.fd, SOL_SOCKET, SO_TYPE, type) && type == SOCK_STREAM)) {
    return "not a stream socket";
  }
  const int flags = real->fcntl(r.fd, F_GETFL);
  if (flags < 0) return "not a socket";
  r.non_blocking = (flags & O_NONBLOCK) != 0;

  endpoint bound;
  if (!read_local(r.fd, bound)) return "no local address";
  r.original.socket_family = bound.address.family;
  if (bound.address.family != r.named.address.family) return "address and socket of two families";
  if (bound.port != 0 && call.free_port == 0) return "bound to a local port";
  r.original.local = bound.address;
  r.original.bound = bound.address.bytes != address{}.bytes;

  read_socket(r.fd, SOL_SOCKET, SO_SNDTIMEO, r.program_timeout);
  r.original.early.send_timeout = r.program_timeout;
  r.cookie = socket_cookie(r.fd);
  if (r.cookie == 0) return "no socket cookie";
  return call.cookie != 0 && r.cookie != call.cookie ? "the fd shows another socket" : nullptr;
}

// Nothing but the named endpoint to try, now or later.
bool is_single(core& c, const pending_race& r, time_point now) {
  if (lookup_is_open(c, r.lookup, now)) return false;
  return std::all_of(r.known.candidates.begin(), r.known.candidates.end(), [&](const candidate& k) {
    return k.destination == unmapped(r.named.address) &&
           (k.port != 0 ? k.port : r.port) == r.named.port;
  });
}

// An address of SRV's targets is meant at the port that the first of its records names, also by a program that puts
// the service's usual port into what it was handed.
void go_to_own_port(pending_race& r, happy_connect& call) {
  r.port = r.known.port;
  if (!r.known.by_srv || r.named.port != r.port) return;
  const auto& list = r.known.candidates;
  const auto k = std::find_if(list.begin(), list.end(), [&](const candidate& c) {
    return c.destination == unmapped(r.named.address);
  });
  int protocol = 0;
  if (k == list.end() || k->port == 0 || k->port == r.named.port ||
      !read_socket(r.fd, SOL_SOCKET, SO_PROTOCOL, protocol) ||
      (protocol != IPPROTO_TCP && protocol != IPPROTO_MPTCP)) {
    return;
  }
  r.named.port = k->port;
  std::memcpy(&call.instead, call.to, call.length);
  // The port is at the same place in the addresses of both families.
  reinterpret_cast<sockaddr_in*>(&call.instead)->sin_port = htons(k->port);
  call.to = reinterpret_cast<const sockaddr*>(&call.instead);
}

// A program that named no service tells here which one its lookup was for.
void learn_service(core& c, const pending_race& r) {
  intent* meant = c.intents.by_id(r.known.id);
  if (meant == nullptr || !meant->service_unknown || meant->seen_port == r.port) return;
  int type = 0;
  if (read_socket(r.fd, SOL_SOCKET, SO_TYPE, type) && type == SOCK_STREAM)
    meant->seen_port = r.port;
}

void describe(core& c, pending_race& r, const happy_connect& call, const endpoint& named,
              pid_t thread, time_point now) {
  r.id = ++c.last_id;
  r.fd = call.fd;
  r.thread = thread;
  r.frame = &call;
  r.single_threaded = call.single_threaded != 0;
  r.named = named;
  r.port = named.port;
  r.began = now;
  std::construct_at(&r.machine, c.timing);
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
  std::construct_at(&r.machine, at_once);
  r.swap = true;
  const std::uint32_t mark = HAPPY_SWAP_MARK;
  return read_socket(r.fd, SOL_SOCKET, SO_MARK, r.original.early.mark) &&
         real->setsockopt(r.fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) == 0;
}

// connect() entered again says of an attempt that has succeeded, or of one that is under way (on a socket that does not
// block any more), what the first call would not have said.
happy_step raceless_returned(happy_connect& call, int result, int error) {
  if (call.stage == stage_alone && error == EISCONN) return give(call, 0, 0);
  return give(call, result, call.stage == stage_alone && error == EALREADY ? EINPROGRESS : error);
}

happy_step start(core& c, pending_race& r, happy_connect& call, time_point now) {
  if (!r.non_blocking) r.machine.set_deadline(program_deadline(r, now));
  advance_to_named(c, r, now);
  r.delay = r.machine.next_start() - now;
  if (!r.non_blocking) return start_blocking(c, r, call, now);
  call.stage = stage_pending;
  return HAPPY_STEP_CONNECT;
}

}  // namespace

happy_step connect_begin(core& c, happy_connect& call) {
  endpoint named;
  if (!from_sockaddr(call.to, call.length, named)) return HAPPY_STEP_PASS;
  const pid_t thread = raw_gettid();
  follow_hint(c, call, named);
  const patient_guard guard(c, patience_to_begin);
  if (!guard) return pass(call, named, "the engine is busy");
  const time_point now = clock_now();
  know_proc(c);
  drop_abandoned(c, call, thread);
  const std::uint64_t cookie = c.races.none_used() ? 0 : socket_cookie(call.fd);
  if (is_pending(c, cookie)) return pass(call, named, "a race is pending: the kernel knows");

  if (is_connecting_elsewhere(c, cookie)) {
    return pass(call, named, "two threads connect one socket");
  }

  pending_race* r = c.races.acquire();
  if (r == nullptr) return pass(call, named, "too many races");
  const auto give_up = [&](const char* reason) {
    c.races.release(*r);
    return pass(call, named, reason);
  };
  describe(c, *r, call, named, thread, now);
  const bool swap = (c.host.settings->force & HAPPY_FORCE_SWAP) != 0;
  if (swap) {
    if (const char* reason = judge_socket(*r, call)) return give_up(reason);
    if (!describe_swap(*r)) return give_up("no mark can be set");
    call.record = r->index;
    call.generation = r->generation;
    return start(c, *r, call, now);
  }
  if (!c.intents.find({unmapped(named.address), named.port}, thread, now, r->known)) {
    return give_up("address of no lookup");
  }
  go_to_own_port(*r, call);
  learn_service(c, *r);
  r->lookup = lookup_is_open(c, r->known.id, now) ? r->known.id : 0;
  const int known_error = c.intents.take_failure(r->named, thread, now);
  r->last_resort = has_last_resort(c, *r, now);
  if (known_error == 0 && !r->last_resort && is_single(c, *r, now))
    return give_up("single address");
  if (const char* reason = judge_socket(*r, call)) return give_up(reason);
  if (known_error != 0 && !r->non_blocking) {
    trace_failure(*r, r->named, known_error);
    c.races.release(*r);
    return give(call, -1, known_error);
  }
  if (pending_race* first = r->non_blocking ? find_race_to_join(c, *r) : nullptr) {
    return join(c, *first, *r, call, now);
  }
  call.record = r->index;
  call.generation = r->generation;
  if (r->non_blocking && lacks_addresses(c, *r, now)) {
    const happy_step veiled = start_veiled(c, *r, call, now);
    if (veiled != HAPPY_STEP_PASS) return veiled;
  }
  return start(c, *r, call, now);
}

happy_step connect_returned(core& c, happy_connect& call, int result, int error) {
  const patient_guard guard(c, patience_to_end);
  pending_race* r = guard ? c.races.find(call.record, call.generation) : nullptr;
  if (r == nullptr) return raceless_returned(call, result, error);
  const time_point now = clock_now();
  switch (call.stage) {
    case stage_pending: return pending_returned(c, *r, call, result, error, now);
    case stage_joined: return joined_returned(c, *r, call, result, error, now);
    default: return blocking_returned(c, *r, call, result, error, now);
  }
}

void connect_left(core& c, happy_connect& call) {
  const patient_guard guard(c, patience_to_end);
  pending_race* r = guard ? c.races.find(call.record, call.generation) : nullptr;
  if (r == nullptr || r->non_blocking) return;
  blocking_left(c, *r);
}

}  // namespace happy
