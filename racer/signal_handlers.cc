#include "racer/signal_handlers.h"

#include <csignal>

#include "shim/base/handler_sign.h"
#include "shim/base/raw_syscall.h"
#include "shim/base/real_functions.h"

namespace happy {
namespace {

bool is_installed(const struct sigaction& action) {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

}  // namespace

handlers installed_handlers(std::uint64_t blocked) {
  bool restarting = false;
  bool interrupting = false;
  for (int number = 1; number < _NSIG; ++number) {
    struct sigaction action;
    if ((blocked & bit_of_signal(number)) != 0) continue;
    if (real->sigaction(number, nullptr, &action) != 0) continue;  // glibc's own two
    if (!is_installed(action)) continue;
    ((action.sa_flags & SA_RESTART) != 0 ? restarting : interrupting) = true;
  }
  if (!interrupting) return handlers::restarting;
  return restarting ? handlers::mixed : handlers::interrupting;
}

std::uint64_t due_signals(std::uint64_t blocked) {
  std::uint64_t pending = 0;
  const bool told =
      raw_syscall(SYS_rt_sigpending, reinterpret_cast<long>(&pending), sizeof pending) == 0;
  return told ? pending & ~blocked : 0;
}

bool interrupts(std::uint64_t due, bool timed) {
  for (int number = 1; due != 0; ++number, due >>= 1) {
    struct sigaction action;
    if ((due & 1) == 0 || real->sigaction(number, nullptr, &action) != 0) continue;
    if (is_installed(action) && (timed || (action.sa_flags & SA_RESTART) == 0)) return true;
  }
  return false;
}

}  // namespace happy
