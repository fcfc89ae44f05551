// The hook of connect(). The engine decides step by step; this file does the blocking calls, so that a
// cancelled or longjmp()ing caller unwinds through plain C only.

#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

#include <cstdint>

#include "shim/base/address_filter.h"
#include "shim/base/handler_sign.h"
#include "shim/base/raw_syscall.h"
#include "shim/base/real_functions.h"
#include "shim/bound_ports.h"
#include "shim/engine_calls.h"
#include "shim/fast_open.h"
#include "shim/hints.h"
#include "shim/loader.h"
#include "shim/pending.h"
#include "shim/policy.h"
#include "shim/process.h"
#include "shim/readable.h"
#include "shim/socket_cookie.h"
#include "shim/stack_room.h"
#include "shim/tied_socket.h"
#include "shim/trace.h"
#include "shim/translated.h"

namespace happy {
namespace {

happy_step begin(const happy_engine* engine, happy_connect& call) {
  engine_visit visit;
  errno_saver keep;
  call.signals = visit.signals_before();
  return engine->connect_begin(&call);
}

// Whether a race of this very socket has put another in its place since.
bool was_replaced(std::uint64_t before, std::uint64_t now) {
  for (const auto& r : pending_counts.replaced) {
    if (__atomic_load_n(&r[1], __ATOMIC_SEQ_CST) == now &&
        __atomic_load_n(&r[0], __ATOMIC_SEQ_CST) == before) {
      return true;
    }
  }
  return false;
}

// The real connect(). To begin a race takes its time, more where many threads do: another thread may have closed the
// socket meanwhile, and its number may show a stranger's. That is told as if it had come before the call. (To keep the
// socket by a number of ours meanwhile shows in the program: locks, limits, numbers, children.)
int connect_same_socket(const happy_connect& call) {
  const int fd = call.through != 0 ? call.through : call.fd;
  const std::uint64_t now = call.cookie == 0 ? 0 : cookie_of(fd);
  if (now == call.cookie || was_replaced(call.cookie, now))
    return real->connect(fd, call.to, call.length);
  errno = EBADF;
  return -1;
}

happy_step connect_now(const happy_engine* engine, happy_connect& call) {
  const int result = connect_same_socket(call);
  const int error = errno;
  engine_visit visit;
  return engine->connect_returned(&call, result, error);
}

// The first moment of a connect() (see call.quiet) passes without signals and cancellation: they come in
// a few milliseconds. Most connects of a single-threaded program are over then.
happy_step begin_and_connect_quietly(const happy_engine* engine, happy_connect& call) {
  const signals_off no_signals;
  const cancellation_off no_cancellation;
  const happy_step first = begin(engine, call);
  return first == HAPPY_STEP_CONNECT && call.quiet != 0 ? connect_now(engine, call) : first;
}

// `sleep`: a system call, given its limit in time (0: none). connect() is a cancellation point, so this
// is one too: nothing is held meanwhile. The error, or 0.
template <typename SystemCall>
int sleep_at_most(std::int64_t wait_ns, const SystemCall& sleep) {
  timespec limit{.tv_sec = wait_ns / 1'000'000'000, .tv_nsec = wait_ns % 1'000'000'000};
  int type = 0;
  libc.pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
  const long outcome = sleep(wait_ns < 0 ? 0 : reinterpret_cast<long>(&limit));
  libc.pthread_setcanceltype(type, nullptr);
  return outcome < 0 ? static_cast<int>(-outcome) : 0;
}

// Sleeps on the race's word. A plain futex wait restarts under SA_RESTART as connect() does; with a
// limit it does not, as connect() with SO_SNDTIMEO does not.
happy_step wait_for_race(const happy_engine* engine, happy_connect& call) {
  const int error = sleep_at_most(call.wait_ns, [&](long limit) {
    return raw_syscall(SYS_futex, reinterpret_cast<long>(call.word), FUTEX_WAIT_PRIVATE,
                       call.word_value, limit);
  });
  engine_visit visit;
  return engine->connect_woken(&call, error);
}

happy_step poll_for_race(const happy_engine* engine, happy_connect& call) {
  const int error = sleep_at_most(call.wait_ns, [&](long limit) {
    if (call.quiet == 0) return signals_off::poll_open(call.fds, call.fd_count, limit);
    return raw_syscall(SYS_ppoll, reinterpret_cast<long>(call.fds),
                       static_cast<long>(call.fd_count), limit, 0, sizeof(std::uint64_t));
  });
  engine_visit visit;
  return engine->connect_polled(&call, error);
}

// The handlers run of signals that do not end connect(). Has another one come since, the engine looks at it first.
void let_in(happy_connect& call) {
  std::uint64_t pending = 0;
  raw_syscall(SYS_rt_sigpending, reinterpret_cast<long>(&pending), sizeof pending);
  timespec at_once{};
  if ((pending & ~call.signals & ~call.let_in) == 0)
    signals_off::poll_open(nullptr, 0, reinterpret_cast<long>(&at_once));
  else
    call.wait_ns = 0;
}

// The caller itself looks after the race. Signals are open while it waits and at no other time, so that none is missed;
// in a quiet wait they are not, as the engine has to see them before their handlers run.
happy_step look_after_race(const happy_engine* engine, happy_connect& call) {
  const signals_off no_signals;
  happy_step step = HAPPY_STEP_POLL;
  while (step == HAPPY_STEP_POLL) {
    if (call.quiet != 0 && call.let_in != 0) let_in(call);
    step = poll_for_race(engine, call);
  }
  return step;
}

// Goes through the steps after the first until there is a result.
void run(const happy_engine* engine, happy_connect& call, happy_step step) {
  const left_call_watch<happy_connect> watch(engine->connect_left, call);
  while (step != HAPPY_STEP_RESULT) {
    switch (step) {
      case HAPPY_STEP_CONNECT: step = connect_now(engine, call); break;
      case HAPPY_STEP_WAIT: step = wait_for_race(engine, call); break;
      case HAPPY_STEP_POLL: step = look_after_race(engine, call); break;
      case HAPPY_STEP_PASS:
      case HAPPY_STEP_RESULT: break;
    }
  }
}

int race(const happy_engine* engine, happy_connect& call) {
  const int errno_before = errno;
  if (call.single_threaded == 0) {
    if (call.cookie == 0) call.cookie = cookie_of(call.fd);
    if (call.cookie == 0) return real->connect(call.fd, call.to, call.length);  // it is closed
  }
  const happy_step first = begin_and_connect_quietly(engine, call);
  if (first == HAPPY_STEP_PASS) return connect_same_socket(call);
  run(engine, call, first);
  errno = call.result == 0 ? errno_before : call.error;
  return call.result;
}

bool is_readable_address(const sockaddr* to, socklen_t length) {
  return length <= sizeof(sockaddr_storage) && is_readable(to, length);
}

bool forced_swap() { return (process_environment().settings.force & HAPPY_FORCE_SWAP) != 0; }

// No lookup of this process gave the address, and no child hints at one. Most connects of a program that
// looks names up elsewhere end here.
bool is_unknown(const sockaddr* to, socklen_t length) {
  endpoint where;
  if (has_hints() || forced_swap() || trace_on()) return false;
  return from_sockaddr(to, length, where) && !may_be_known(pending_counts, unmapped(where.address));
}

// Loading allocates, which a signal handler may have interrupted.
const happy_engine* load_outside_handlers() {
  if (const happy_engine* engine = loaded_engine()) return engine;
  std::uint64_t blocked = 0;
  raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, 0, reinterpret_cast<long>(&blocked), sizeof blocked);
  return may_be_in_handler(blocked) || !has_stack(lookup_stack) ? nullptr : load_engine();
}

// Without a lookup of this process nothing is known of the address, unless a child has left a hint (or
// every connect is to be handed over, for tests).
const happy_engine* engine_for(const sockaddr* to, socklen_t length) {
  const happy_engine* engine = loaded_engine();
  if (engine != nullptr) return engine;
  happy_hint ignored;
  if (!forced_swap() && find_hint(to, length, &ignored) == 0) return nullptr;
  return load_outside_handlers();
}

int type_of(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  return raw_syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, reinterpret_cast<long>(&type),
                     reinterpret_cast<long>(&length)) == 0
             ? type
             : 0;
}

bool is_stream(int fd) { return type_of(fd) == SOCK_STREAM; }

// UDP goes by way of a NAT64 only by the user's wish.
bool is_taken(int fd) {
  const int type = type_of(fd);
  return type == SOCK_STREAM || (type == SOCK_DGRAM && process_environment().settings.udp != 0);
}

// What the kernel says when it has no route to an IPv4 destination, or when the socket is a translated one
// already, which takes no IPv4 address.
bool has_second_way(int error) { return error == ENETUNREACH || error == EINVAL; }

happy_lookup_step synthesise(const happy_engine* engine, happy_synthesis& call) {
  engine_visit visit;
  call.signals = visit.signals_before();
  return engine->synthesise(&call);
}

bool is_in_pool(const sockaddr* to, socklen_t length) {
  endpoint where;
  if (!from_sockaddr(to, length, where)) return false;
  const address ipv4 = unmapped(where.address);
  return ipv4.family == family::ipv4 && ipv4.bytes[0] == process_environment().settings.bridge_pool;
}

}  // namespace

bool is_datagram(int fd) { return type_of(fd) == SOCK_DGRAM; }

bool leads_to_pool(int fd, const sockaddr* to, socklen_t length, int flags) {
  if (!any_bridged() || !hooks_live()) return false;
  errno_saver keep;
  if (!is_readable(to, length) || !is_in_pool(to, length)) return false;
  if (is_stream(fd) && (flags & MSG_FASTOPEN) == 0) return false;  // it has a peer
  happy_synthesis call{};
  find_way_by_ipv6(-1, to, length, call);
  return call.bridged != 0;
}

bool may_be_synthesised(int error, int fd, const sockaddr* to, socklen_t length) {
  endpoint where;
  translated_socket ignored;
  if (!has_second_way(error) || (error == EINVAL && !any_translated())) return false;
  // Of a longer name the kernel has not looked at the pointer.
  if (length > sizeof(sockaddr_storage) || !from_sockaddr(to, length, where)) return false;
  if (unmapped(where.address).family != family::ipv4) return false;
  return error == ENETUNREACH ? is_taken(fd) : is_translated(fd, ignored);
}

bool find_way_by_ipv6(int fd, const sockaddr* to, socklen_t length, happy_synthesis& call) {
  const bool possible = !foreign_process() && !is_short_of_stack() && has_stack(lookup_stack);
  const happy_engine* engine = possible ? load_outside_handlers() : nullptr;
  if (engine == nullptr) return false;
  call.fd = fd;
  call.to = to;
  call.length = length;
  call.single_threaded = single_threaded() ? 1 : 0;
  if (fd >= 0 && call.single_threaded == 0 && call.cookie == 0) call.cookie = cookie_of(fd);
  happy_lookup_step step = HAPPY_LOOKUP_DECLINED;
  while ((step = synthesise(engine, call)) == HAPPY_LOOKUP_POLL)
    real->poll(call.fds, call.fd_count, call.timeout_ms);
  return step == HAPPY_LOOKUP_DONE;
}

namespace {

happy_connect call_of(int fd, const sockaddr* to, socklen_t length) {
  happy_connect call{};
  call.fd = fd;
  call.to = to;
  call.length = length;
  call.single_threaded = single_threaded() ? 1 : 0;
  call.free_port = port_was_left_to_kernel(fd) ? 1 : 0;
  return call;
}

int connect_by_ipv6(int fd, const happy_synthesis& call) {
  const auto* to = reinterpret_cast<const sockaddr*>(&call.destination);
  happy_connect again = call_of(fd, to, sizeof call.destination);
  if (call.cookie != 0) {
    again.cookie = cookie_of(fd);
    if (again.cookie != call.cookie && !was_replaced(call.cookie, again.cookie)) {
      errno = ENETUNREACH;  // what IPv4 has to say
      return -1;
    }
  }
  if (call.raced == 0 && !forced_swap() && !trace_on())
    return real->connect(fd, to, sizeof call.destination);
  return race(loaded_engine(), again);
}

// An address of the bridging pool never leaves the host. False: it is not one that this process was handed.
bool connect_bridged(int fd, const sockaddr* to, socklen_t length, int& result) {
  if (!any_bridged() || !is_in_pool(to, length)) return false;
  const int errno_before = errno;
  happy_synthesis call{};
  call.connects = 1;
  const bool taken = is_taken(fd);
  const bool found = find_way_by_ipv6(taken ? fd : -1, to, length, call);
  errno = errno_before;
  if (call.bridged == 0) return false;
  if (found && taken) {
    result = connect_by_ipv6(fd, call);
    return true;
  }
  errno = ENETUNREACH;
  result = -1;
  return true;
}

// A translated UDP socket whose peer has brought it an IPv6 address of its own would not receive by IPv4. (The other way
// round it takes a new socket: synthesise().)
void release_ipv6_peer(int fd) {
  socket_address own;
  own.length = sizeof own.storage;
  endpoint where;
  if (real->getsockname(fd, own.get(), &own.length) != 0 ||
      !from_sockaddr(own.get(), own.length, where)) {
    return;
  }
  if (where.address.bytes == address{}.bytes || is_v4_mapped(where.address)) return;
  const sockaddr nothing{.sa_family = AF_UNSPEC, .sa_data = {}};
  real->connect(fd, &nothing, sizeof nothing);
}

// Before a connect() of a program that has translated sockets for which it matters. errno survives.
void prepare_translated(int fd, const sockaddr* to, socklen_t length) {
  errno_saver keep;
  endpoint where;
  translated_socket s;
  if (!is_readable(to, length) || !from_sockaddr(to, length, where) || !is_translated(fd, s))
    return;
  const bool to_ipv4 = unmapped(where.address).family == family::ipv4;
  const bool mapped_view = (s.flags & HAPPY_TRANSLATED_MAPPED) != 0;
  if (mapped_view && !to_ipv4) return forget_translated(fd);
  if (to_ipv4 && (s.flags & HAPPY_TRANSLATED_DATAGRAM) != 0) release_ipv6_peer(fd);
}

// A translated TCP socket, which takes no IPv4 address, can go to one that has a route of its own all the same. False:
// there is none.
bool connect_natively(int fd, const sockaddr* to, socklen_t length, int& result) {
  endpoint where;
  if (errno != EINVAL || !from_sockaddr(to, length, where)) return false;
  const socket_address as_mapped = to_sockaddr({mapped(where.address), where.port});
  result = real->connect(fd, as_mapped.get(), as_mapped.length);
  return result == 0 || errno != ENETUNREACH;
}

// `cookie`: of the socket that was connected; 0: nobody has asked.
[[gnu::noinline]] int second_way(int result, int fd, const sockaddr* to, socklen_t length,
                                 std::uint64_t cookie = 0) {
  if (result == 0 || !may_be_synthesised(errno, fd, to, length)) return result;
  if (cookie != 0 && cookie_of(fd) != cookie) return result;
  if (connect_natively(fd, to, length, result)) return result;
  const int error = errno;
  happy_synthesis call{};
  call.connects = 1;
  call.cookie = cookie;
  const bool found = find_way_by_ipv6(fd, to, length, call);
  errno = error;
  return found ? connect_by_ipv6(fd, call) : -1;
}

// False: connect() is as ever.
bool connect_past_interface(int fd, const sockaddr* to, socklen_t length, int& result) {
  if (!is_tied_without_ipv4(fd, to, length) || !is_taken(fd)) return false;
  const int errno_before = errno;
  happy_synthesis call{};
  call.connects = 1;
  const bool found = find_way_by_ipv6(fd, to, length, call);
  errno = errno_before;
  if (found) result = connect_by_ipv6(fd, call);
  return found;
}

int plain_connect(int fd, const sockaddr* to, socklen_t length) {
  return second_way(real->connect(fd, to, length), fd, to, length);
}

bool is_disconnected(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  return raw_syscall(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, reinterpret_cast<long>(&info),
                     reinterpret_cast<long>(&length)) == 0 &&
         info.tcpi_state == TCP_CLOSE;
}

// What a disconnected socket connects to from here on is not its race's, which before the delay has passed would not
// notice.
void end_race_if_disconnected(int fd) {
  if (races_pending() && is_disconnected(fd))
    note_closing(static_cast<unsigned>(fd), static_cast<unsigned>(fd));
}

// The same of one that has failed, and is connected again.
void end_failed_race(int fd) {
  if (races_pending() && is_disconnected(fd))
    tell_engine([&](const happy_engine& engine) { engine.connecting_anew(fd); });
}

bool disconnects(const sockaddr* to, socklen_t length) {
  return length >= sizeof(sa_family_t) && to->sa_family == AF_UNSPEC;
}

// Not inlined, nor the other one: connect() itself needs no stack then.
[[gnu::noinline]] int hook_connect(int fd, const sockaddr* to, socklen_t length) {
  if (any_translated_otherwise()) prepare_translated(fd, to, length);
  if (int result = 0; connect_past_interface(fd, to, length, result)) return result;
  if (!is_readable_address(to, length))
    return real->connect(fd, to, length);  // EFAULT is the kernel's to say
  if (disconnects(to, length)) {
    if (races_pending()) tell_engine([&](const happy_engine& engine) { engine.disconnecting(fd); });
    const int result = real->connect(fd, to, length);
    end_race_if_disconnected(fd);
    return result;
  }
  end_failed_race(fd);
  const pass_reason reason = judge_connect(to, length);
  if (reason != pass_reason::none) {
    trace_pass("connect", reason);
    return real->connect(fd, to, length);
  }
  if (int result = 0; connect_bridged(fd, to, length, result)) return result;
  if (is_unknown(to, length)) return plain_connect(fd, to, length);
  if (is_short_of_stack() || !has_stack(connect_stack)) return real->connect(fd, to, length);
  const happy_engine* engine = engine_for(to, length);
  if (engine == nullptr || foreign_process()) return plain_connect(fd, to, length);

  happy_connect call = call_of(fd, to, length);
  const int result = race(engine, call);
  return second_way(result, fd, call.to, call.length, call.cookie);
}

// The engine, where the data's destination may be raced; nullptr: it is not.
const happy_engine* engine_for_data(int fd, const sockaddr* to, socklen_t length) {
  if (!connects_watched.load(std::memory_order_acquire) || !hooks_live()) return nullptr;
  if (!is_readable_address(to, length) || judge_connect(to, length) != pass_reason::none ||
      is_unknown(to, length) || is_short_of_stack() || !has_stack(connect_stack)) {
    return nullptr;
  }
  const int flags = real->fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) == 0 || foreign_process()) return nullptr;
  end_failed_race(fd);
  return engine_for(to, length);
}

// What has been sent with the SYN cannot be sent to another address too: that is no race's.
constexpr int data_is_under_way = EALREADY;

}  // namespace

ssize_t open_fast(int fd, const sockaddr* to, socklen_t length, const data_sender& data) {
  const int errno_before = errno;
  const happy_engine* engine = engine_for_data(fd, to, length);
  if (engine == nullptr) {
    errno = errno_before;
    return data.send(data.how, to, length);
  }
  happy_connect call = call_of(fd, to, length);
  const happy_step step = begin(engine, call);
  if (step == HAPPY_STEP_RESULT && call.result < 0) {
    errno = call.error;
    return -1;
  }
  errno = errno_before;
  const ssize_t sent = data.send(data.how, call.to, call.length);
  if (step != HAPPY_STEP_CONNECT) return sent;
  errno_saver keep;
  const int error = sent >= 0 ? data_is_under_way : errno;
  engine_visit visit;
  engine->connect_returned(&call, -1, error);
  return sent;
}

}  // namespace happy

extern "C" __attribute__((visibility("default"))) int connect(int fd, const sockaddr* to,
                                                              socklen_t length) {
  using namespace happy;
  // Nothing is known of any address, nor of any socket: the pointer is not even looked at.
  if (connects_watched.load(std::memory_order_acquire) && hooks_live())
    return hook_connect(fd, to, length);
  if (real == nullptr)
    return as_libc(raw_syscall(SYS_connect, fd, reinterpret_cast<long>(to), length));
  const int result = real->connect(fd, to, length);
  if (result == 0 || !has_second_way(errno) || !hooks_live()) return result;
  return second_way(result, fd, to, length);
}
