// Whether a thread may be running a signal handler, which may have interrupted malloc().
#pragma once

#include <sys/syscall.h>

#include <csignal>
#include <cstdint>

#include "shim/base/raw_syscall.h"

namespace happy {

// Signals as the kernel counts them.
inline constexpr int signal_count = 64;

constexpr std::uint64_t bit_of_signal(int number) { return std::uint64_t{1} << (number - 1); }

// Signals of which a handler often removes itself as it begins (SA_RESETHAND): crash reporters. Nobody
// blocks them otherwise.
inline constexpr std::uint64_t fault_signals =
    bit_of_signal(SIGSEGV) | bit_of_signal(SIGBUS) | bit_of_signal(SIGILL) | bit_of_signal(SIGFPE) |
    bit_of_signal(SIGABRT) | bit_of_signal(SIGTRAP) | bit_of_signal(SIGSYS);

// struct sigaction as the kernel has it on architectures with SA_RESTORER.
struct kernel_sigaction {
  std::uintptr_t handler;
  unsigned long flags;
  std::uintptr_t restorer;
  std::uint64_t mask;
};

// False: not on a signal stack, or the kernel does not say.
inline bool on_signal_stack(stack_t& stack) {
  return raw_syscall(SYS_sigaltstack, 0, reinterpret_cast<long>(&stack)) == 0 &&
         (stack.ss_flags & SS_ONSTACK) != 0;
}

// False only if no handler runs on the calling thread, whose signal mask is `blocked`: while one does, the
// kernel blocks its signal and those of its sa_mask, unless the handler itself has unblocked them. True in
// threads that block such signals all the time, too. A handler for the thread's signal stack does not run while
// the thread stands elsewhere: those of crash reporters leave all signals open, and are told by that alone.
//
// Context:  one system call per signal; signal-safe.
inline bool may_be_in_handler(std::uint64_t blocked) {
  stack_t stack{};
  stack.ss_flags = SS_DISABLE;
  if (on_signal_stack(stack)) return true;
  const bool stands_elsewhere = (stack.ss_flags & SS_DISABLE) == 0;
  for (int number = 1; number <= signal_count; ++number) {
    const std::uint64_t bit = bit_of_signal(number);
    kernel_sigaction action{};
    if (raw_syscall(SYS_rt_sigaction, number, 0, reinterpret_cast<long>(&action),
                    sizeof action.mask) != 0) {
      continue;
    }
    const bool installed = action.handler > 1;  // SIG_DFL, SIG_IGN
    if (!installed) {
      if ((fault_signals & blocked & bit) != 0) return true;
      continue;
    }
    if (stands_elsewhere && (action.flags & SA_ONSTACK) != 0) continue;
    const bool may_run = (blocked & bit) != 0 || (action.flags & SA_NODEFER) != 0;
    if (may_run && (action.mask & ~blocked) == 0) return true;
  }
  return false;
}

}  // namespace happy
