// A call into the engine: no cancellation, hooks on this thread pass through, and no signal handler runs:
// it could call connect(), which takes the engine's lock, or leave by siglongjmp() with all this undone.
#pragma once

#include <poll.h>

#include <csignal>
#include <cstdint>

#include "shim/base/guards.h"
#include "shim/base/raw_syscall.h"
#include "shim/late_libc.h"
#include "shim/process.h"

namespace happy {

// The calling thread is in a signals_off; what it had blocked before. initial-exec, as all of the shim's.
inline thread_local constinit bool signals_are_off = false;
inline thread_local constinit std::uint64_t signals_blocked_before = 0;

// No signal handler runs inside: a handler may call connect(), which takes the engine's lock. One within
// another costs nothing.
class signals_off {
 public:
  signals_off() : outermost_(!signals_are_off) {
    if (!outermost_) return;
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&all),
                reinterpret_cast<long>(&signals_blocked_before), sizeof all);
    signals_are_off = true;
  }
  ~signals_off() {
    if (!outermost_) return;
    const std::uint64_t previous = signals_blocked_before;  // a handler may overwrite it at once
    signals_are_off = false;
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&previous), 0,
                sizeof previous);
  }
  // ppoll() inside one, with the mask that the program has set: no signal is missed, and -EINTR says that a handler has
  // run. `limit` as the system call takes it (0: none). A cancellation point, which programs jump out of.
  static long poll_open(pollfd* fds, nfds_t count, long limit) {
    const std::uint64_t before = signals_blocked_before;  // a handler may overwrite it
    signals_are_off = false;
    const long outcome =
        raw_syscall(SYS_ppoll, reinterpret_cast<long>(fds), static_cast<long>(count), limit,
                    reinterpret_cast<long>(&before), sizeof before);
    signals_are_off = true;
    signals_blocked_before = before;
    return outcome;
  }

  // Undoes one whose scope was left without its end.
  static void undo() {
    if (!signals_are_off) return;
    signals_are_off = false;
    const std::uint64_t held = all & ~signals_blocked_before;
    raw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, reinterpret_cast<long>(&held), 0, sizeof held);
  }

  // As the kernel counts signals.
  std::uint64_t before() const { return signals_blocked_before; }
  signals_off(const signals_off&) = delete;
  signals_off& operator=(const signals_off&) = delete;

 private:
  // As the kernel counts them, but for glibc's own two (cancellation and setuid of all threads).
  static constexpr std::uint64_t all = ~(std::uint64_t{3} << 31);
  const bool outermost_;
};

class engine_visit {
 public:
  engine_visit() : before_(set_inside(1)) {}
  ~engine_visit() { set_inside(before_); }

  // What the caller's thread had blocked.
  std::uint64_t signals_before() const { return quiet_.before(); }

  engine_visit(const engine_visit&) = delete;
  engine_visit& operator=(const engine_visit&) = delete;

 private:
  signals_off quiet_;
  cancellation_off uncancelled_;
  int before_;
};

}  // namespace happy
