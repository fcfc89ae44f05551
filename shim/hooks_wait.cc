// The hooks of the calls in which a program waits for its sockets. While a non-blocking connect() is being
// raced they wait in slices, so that a process with one thread needs no other to watch the time, and so
// that somebody who waits only to read sees the socket that has taken the original's place. At all other
// times they are the real functions.

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "shim/base/real_functions.h"
#include "shim/engine_visit.h"
#include "shim/late_function.h"
#include "shim/loader.h"
#include "shim/pending.h"
#include "shim/readable.h"
#include "shim/stack_room.h"

namespace happy {
namespace {

using select_function = int (*)(int, fd_set*, fd_set*, fd_set*, timeval*);
using pselect_function = int (*)(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*);
using poll_function = int (*)(pollfd*, nfds_t, int);
using ppoll_function = int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*);
using poll_chk_function = int (*)(pollfd*, nfds_t, int, size_t);
using ppoll_chk_function = int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t);
using epoll_wait_function = int (*)(int, epoll_event*, int, int);
using epoll_pwait_function = int (*)(int, epoll_event*, int, int, const sigset_t*);
using epoll_pwait2_function = int (*)(int, epoll_event*, int, const timespec*, const sigset_t*);

constinit late_function<poll_function> real_poll{"poll"};
constinit late_function<ppoll_function> real_ppoll{"ppoll"};
constinit late_function<poll_chk_function> real_poll_chk{"__poll_chk"};
constinit late_function<ppoll_chk_function> real_ppoll_chk{"__ppoll_chk"};
constinit late_function<select_function> real_select{"select"};
constinit late_function<pselect_function> real_pselect{"pselect"};
constinit late_function<epoll_wait_function> real_epoll_wait{"epoll_wait"};
constinit late_function<epoll_pwait_function> real_epoll_pwait{"epoll_pwait"};
constinit late_function<epoll_pwait2_function> real_epoll_pwait2{"epoll_pwait2"};

constexpr std::int64_t billion = 1'000'000'000;

std::int64_t now_ns() {
  timespec now{};
  real->clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * billion + now.tv_nsec;
}

// How long a caller may wait, in nanoseconds; negative: for ever.
struct patience {
  std::int64_t until = -1;

  // Thirty years are for ever: no number overflows.
  static std::int64_t seconds(time_t s) { return std::min<std::int64_t>(s, billion) * billion; }

  static patience of_ms(int ms) { return {ms < 0 ? -1 : now_ns() + std::int64_t{ms} * 1'000'000}; }
  static patience of(const timespec* t) {
    return {t == nullptr ? -1 : now_ns() + seconds(t->tv_sec) + t->tv_nsec};
  }
  static patience of(const timeval* t) {
    return {t == nullptr ? -1
                         : now_ns() + seconds(t->tv_sec) +
                               std::min<std::int64_t>(t->tv_usec, billion * 1000) * 1000};
  }

  std::int64_t left() const {
    if (until < 0) return -1;
    const std::int64_t rest = until - now_ns();
    return rest > 0 ? rest : 0;
  }
};

// What the kernel refuses is the kernel's to refuse.
bool is_valid(const timespec* t) {
  return t == nullptr || (t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < billion);
}
// epoll_pwait2() gives its limit to the kernel as it is; libc itself reads those of the others.
bool is_valid_where_readable(const timespec* t) {
  return t == nullptr || (is_readable(t, sizeof *t) && is_valid(t));
}
bool is_valid(const timeval* t) { return t == nullptr || (t->tv_sec >= 0 && t->tv_usec >= 0); }

// What is waited for other than to write. A thread that waits to read from more than fit is taken for one that
// waits for everything: it wakes every 10 ms while a race is on.
struct read_waits {
  static constexpr unsigned capacity = 64;
  int fds[capacity];
  unsigned count = 0;
  bool everything = false;

  void add(int fd) {
    everything = count == capacity;
    if (!everything) fds[count++] = fd;
  }
};

std::int64_t limit_of(const read_waits& waits) {
  const happy_engine* engine = loaded_engine();
  if (engine == nullptr || is_short_of_stack() || !has_stack(connect_stack)) return -1;
  errno_saver keep;
  engine_visit visit;
  return engine->wait_limit(waits.everything ? nullptr : waits.fds, waits.count,
                            visit.signals_before());
}

std::uint32_t count_restarts() {
  return __atomic_load_n(&pending_counts.restarts, __ATOMIC_SEQ_CST);
}

// Whether asking once more tells the same again. An epoll set tells some of its events once; it never has
// a socket while that is given another attempt.
enum class telling : std::uint8_t { again, once };

// Calls `wait(nanoseconds)`, which gives what the real function gives, until something has happened or
// the caller's patience is at its end.
template <typename Wait>
int in_slices(const patience& caller, const read_waits& waits, telling told, Wait&& wait) {
  for (;;) {
    const std::int64_t limit =
        limit_of(waits);  // a socket that is given another attempt has it now
    const std::uint32_t restarts = count_restarts();
    const std::int64_t left = caller.left();
    const bool whole = limit < 0 || (left >= 0 && left <= limit);
    const int result = wait(whole ? left : limit);
    if (result > 0 && told == telling::again && count_restarts() != restarts) continue;
    if (result != 0 || whole) return result;
  }
}

timespec to_timespec(std::int64_t ns) { return {.tv_sec = ns / billion, .tv_nsec = ns % billion}; }

read_waits waits_in(const pollfd* fds, nfds_t count) {
  read_waits waits;
  for (nfds_t i = 0; i < count; ++i) {
    if (fds[i].fd >= 0 && (fds[i].events & POLLOUT) == 0) waits.add(fds[i].fd);
  }
  return waits;
}

int poll_in_slices(pollfd* fds, nfds_t count, const patience& caller, const sigset_t* mask) {
  constexpr timespec at_once{};
  // What cannot be read is the kernel's to refuse.
  if (const int result = real_ppoll.get()(fds, count, &at_once, mask); result < 0) return result;
  return in_slices(caller, waits_in(fds, count), telling::again, [&](std::int64_t ns) {
    const timespec slice = to_timespec(ns);
    return real_ppoll.get()(fds, count, ns < 0 ? nullptr : &slice, mask);
  });
}

// The sets of select(), kept for the next slice: the kernel writes its result over them.
class fd_sets {
 public:
  fd_sets(int count, fd_set* read, fd_set* write, fd_set* except)
      : size_(count > 0 ? (static_cast<std::size_t>(count) + 63) / 64 * 8 : 0) {
    keep(0, read);
    keep(1, write);
    keep(2, except);
  }

  // False: they are the kernel's to judge. (A program that selects beyond FD_SETSIZE has sets larger than those here.)
  bool are_kept() const { return kept_all_; }

  // After a call that has succeeded: the kernel has just written there itself.
  void restore() {
    for (int i = 0; i < 3; ++i) {
      if (theirs_[i] != nullptr) std::memcpy(theirs_[i], &kept_[i], size_);
    }
  }

  read_waits waits(int count) const {
    read_waits waits;
    for (int fd = 0; fd < count; ++fd) {
      if ((has(0, fd) || has(2, fd)) && !has(1, fd)) waits.add(fd);
    }
    return waits;
  }

 private:
  void keep(int i, fd_set* theirs) {
    theirs_[i] = theirs;
    if (theirs == nullptr || size_ == 0) return;
    if (size_ > sizeof(fd_set) || !is_readable(theirs, size_))
      kept_all_ = false;
    else
      std::memcpy(&kept_[i], theirs, size_);
  }
  bool has(int i, int fd) const { return theirs_[i] != nullptr && FD_ISSET(fd, &kept_[i]); }

  std::size_t size_;
  bool kept_all_ = true;
  fd_set* theirs_[3]{};
  fd_set kept_[3]{};
};

int select_in_slices(int count, fd_set* read, fd_set* write, fd_set* except, const patience& caller,
                     const sigset_t* mask) {
  fd_sets sets(count, read, write, except);
  const auto wait = [&](std::int64_t ns) {
    const timespec slice = to_timespec(ns);
    return real_pselect.get()(count, read, write, except, ns < 0 ? nullptr : &slice, mask);
  };
  if (!sets.are_kept()) return wait(caller.left());
  bool again = false;
  return in_slices(caller, sets.waits(count), telling::again, [&](std::int64_t ns) {
    if (again) sets.restore();
    again = true;
    return wait(ns);
  });
}

int epoll_in_slices(int set, epoll_event* events, int size, const patience& caller,
                    const sigset_t* mask) {
  return in_slices(caller, {}, telling::once, [&](std::int64_t ns) {
    constexpr std::int64_t ms = 1'000'000;
    return real_epoll_pwait.get()(
        set, events, size,
        ns < 0 ? -1 : static_cast<int>(std::min<std::int64_t>((ns + ms - 1) / ms, INT_MAX)), mask);
  });
}

bool clocked_races() {
  return __atomic_load_n(&pending_counts.clocked, __ATOMIC_ACQUIRE) != 0 && races_pending();
}

}  // namespace
}  // namespace happy

using namespace happy;

extern "C" {

__attribute__((visibility("default"))) int poll(pollfd* fds, nfds_t count, int timeout_ms) {
  if (!races_pending()) return real_poll.get()(fds, count, timeout_ms);
  return poll_in_slices(fds, count, patience::of_ms(timeout_ms), nullptr);
}

__attribute__((visibility("default"))) int ppoll(pollfd* fds, nfds_t count, const timespec* timeout,
                                                 const sigset_t* mask) {
  if (!races_pending() || !is_valid(timeout)) return real_ppoll.get()(fds, count, timeout, mask);
  return poll_in_slices(fds, count, patience::of(timeout), mask);
}

__attribute__((visibility("default"))) int __poll_chk(pollfd* fds, nfds_t count, int timeout_ms,
                                                      size_t size) {
  // The real one ends the program if the array is too small, and only it shall.
  if (!races_pending() || size / sizeof(pollfd) < count) {
    return real_poll_chk.get()(fds, count, timeout_ms, size);
  }
  return poll_in_slices(fds, count, patience::of_ms(timeout_ms), nullptr);
}

__attribute__((visibility("default"))) int __ppoll_chk(pollfd* fds, nfds_t count,
                                                       const timespec* timeout,
                                                       const sigset_t* mask, size_t size) {
  if (!races_pending() || !is_valid(timeout) || size / sizeof(pollfd) < count) {
    return real_ppoll_chk.get()(fds, count, timeout, mask, size);
  }
  return poll_in_slices(fds, count, patience::of(timeout), mask);
}

__attribute__((visibility("default"))) int select(int count, fd_set* read, fd_set* write,
                                                  fd_set* except, timeval* timeout) {
  if (!races_pending() || !is_valid(timeout))
    return real_select.get()(count, read, write, except, timeout);
  const patience caller = patience::of(timeout);
  const int result = select_in_slices(count, read, write, except, caller, nullptr);
  if (timeout != nullptr) {  // Linux tells what is left
    const std::int64_t left = caller.left();
    *timeout = {.tv_sec = left / 1'000'000'000, .tv_usec = left % 1'000'000'000 / 1000};
  }
  return result;
}

__attribute__((visibility("default"))) int pselect(int count, fd_set* read, fd_set* write,
                                                   fd_set* except, const timespec* timeout,
                                                   const sigset_t* mask) {
  if (!races_pending() || !is_valid(timeout)) {
    return real_pselect.get()(count, read, write, except, timeout, mask);
  }
  return select_in_slices(count, read, write, except, patience::of(timeout), mask);
}

__attribute__((visibility("default"))) int epoll_wait(int set, epoll_event* events, int size,
                                                      int timeout_ms) {
  if (!clocked_races()) return real_epoll_wait.get()(set, events, size, timeout_ms);
  return epoll_in_slices(set, events, size, patience::of_ms(timeout_ms), nullptr);
}

__attribute__((visibility("default"))) int epoll_pwait(int set, epoll_event* events, int size,
                                                       int timeout_ms, const sigset_t* mask) {
  if (!clocked_races()) return real_epoll_pwait.get()(set, events, size, timeout_ms, mask);
  return epoll_in_slices(set, events, size, patience::of_ms(timeout_ms), mask);
}

__attribute__((visibility("default"))) int epoll_pwait2(int set, epoll_event* events, int size,
                                                        const timespec* timeout,
                                                        const sigset_t* mask) {
  if (!clocked_races() || !is_valid_where_readable(timeout))
    return real_epoll_pwait2.get()(set, events, size, timeout, mask);
  return epoll_in_slices(set, events, size, patience::of(timeout), mask);
}

}  // extern "C"
