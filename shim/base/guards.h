// Scopes that undo themselves: errno, signals.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "shim/base/raw_syscall.h"

namespace happy {

// The caller's errno survives whatever happens inside.
class errno_saver {
 public:
  errno_saver() : saved_(errno) {}
  ~errno_saver() { errno = saved_; }
  errno_saver(const errno_saver&) = delete;
  errno_saver& operator=(const errno_saver&) = delete;

 private:
  int saved_;
};

// No signal handler runs inside: a handler may call connect(), which takes the engine's lock.
class signals_off {
 public:
  signals_off() {
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&all),
                reinterpret_cast<long>(&previous_), sizeof all);
  }
  ~signals_off() {
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&previous_), 0,
                sizeof previous_);
  }
  // What was blocked, as the kernel counts signals.
  std::uint64_t before() const { return previous_; }
  signals_off(const signals_off&) = delete;
  signals_off& operator=(const signals_off&) = delete;

 private:
  // As the kernel counts them, but for glibc's own two (cancellation and setuid of all threads).
  static constexpr std::uint64_t all = ~(std::uint64_t{3} << 31);
  std::uint64_t previous_ = 0;
};

}  // namespace happy
