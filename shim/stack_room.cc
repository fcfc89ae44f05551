#include "shim/stack_room.h"

#include <sys/auxv.h>

#include "shim/base/handler_sign.h"
#include "shim/base/raw_syscall.h"
#include "shim/readable.h"

namespace happy {
namespace {

// What is known to be the thread's own stack.
constinit thread_local std::uintptr_t own_low = 0;
constinit thread_local std::uintptr_t own_high = 0;

// The thread's last signal stack with SS_AUTODISARM.
constinit thread_local std::uintptr_t disarmed_low = 0;
constinit thread_local std::uintptr_t disarmed_high = 0;

// The lowest address of the signal stack that the frame stands on; 0: none.
std::uintptr_t signal_stack_below(std::uintptr_t here) {
  stack_t stack{};
  if (on_signal_stack(stack)) return reinterpret_cast<std::uintptr_t>(stack.ss_sp);
  return disarmed_low <= here && here < disarmed_high ? disarmed_low : 0;
}

bool is_all_readable(std::uintptr_t from, std::uintptr_t to) {
  for (std::uintptr_t at = from; at <= to; at += smallest_page) {
    if (!is_readable_word(at)) return false;
  }
  return true;
}

// The kernel leaves at least 128 MiB below the first stack to it, and writes its random bytes above the first frame.
std::uintptr_t top_of_first_stack(std::uintptr_t here) {
  constexpr std::uintptr_t most = 64U << 20;
  const std::uintptr_t top = getauxval(AT_RANDOM);
  return here < top && top - here < most ? top : 0;
}

// libc keeps what is thread-local above a thread's frames, and a guard page below them: nothing that can be read all
// the way up belongs to anybody else.
std::uintptr_t top_of_thread_stack(std::uintptr_t here) {
  constexpr std::uintptr_t most = 8U << 20;
  const auto top = reinterpret_cast<std::uintptr_t>(&own_low);
  if (here >= top || top - here > most || raw_gettid() == raw_getpid()) return 0;
  return is_all_readable(here, top) ? top : 0;
}

std::uintptr_t top_of_own_stack(std::uintptr_t here) {
  if (here >= own_low && here < own_high) return own_high;
  const std::uintptr_t top = top_of_first_stack(here);
  return top != 0 ? top : top_of_thread_stack(here);
}

// Memory of malloc(), which has no guard pages.
bool is_in_heap(std::uintptr_t here) {
  constexpr std::uintptr_t most = 1U << 30;
  const auto end = static_cast<std::uintptr_t>(raw_syscall(SYS_brk, 0));
  return here < end && end - here < most;
}

// Mapped for nobody to touch, and small: between heaps lies more, or nothing.
bool is_guard(std::uintptr_t at) {
  constexpr int most_pages = 16;
  if (!is_mapped(at)) return false;
  for (int i = 0; i < most_pages; ++i) {
    at -= smallest_page;
    if (!is_mapped(at) || is_readable_word(at)) return true;
  }
  return false;
}

// Fibers of Ruby have 512 KiB, those of PHP 2 MiB. What is farther away may guard a thread's stack, which ends somewhere
// in between.
bool ends_below(std::uintptr_t lowest) {
  constexpr std::uintptr_t near = 256 * 1024;
  constexpr std::uintptr_t most = 2U << 20;
  for (std::uintptr_t at = lowest; lowest - at <= most; at -= smallest_page) {
    if (!is_readable_word(at)) return lowest - at <= near || is_guard(at);
  }
  return false;
}

}  // namespace

bool is_short_of_stack() {
  constexpr std::uintptr_t needed = 32 * 1024;  // twice what the deepest call takes with a trace
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const std::uintptr_t end = signal_stack_below(here);
  return end != 0 && here - end < needed;
}

void note_signal_stack(const stack_t& stack) {
  constexpr unsigned autodisarm = 1U << 31;  // not in glibc 2.36's headers
  if ((static_cast<unsigned>(stack.ss_flags) & autodisarm) == 0) return;
  disarmed_low = reinterpret_cast<std::uintptr_t>(stack.ss_sp);
  disarmed_high = disarmed_low + stack.ss_size;
}

bool has_stack(std::uintptr_t needed) {
  const auto here =
      reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) & ~(smallest_page - 1);
  const std::uintptr_t lowest = here - needed;
  if (lowest >= own_low && here < own_high) return true;
  if (const std::uintptr_t end = signal_stack_below(here)) return lowest >= end;
  if (under_valgrind())
    return false;  // stacks are its own affair, and its tools know nothing of our locks
  const std::uintptr_t top = top_of_own_stack(here);
  for (std::uintptr_t at = here; at >= lowest; at -= smallest_page) {
    if (!is_readable_word(at)) return false;  // the kernel makes the first stack grow by this
  }
  if (top == 0) return !is_in_heap(here) && ends_below(lowest);
  own_low = lowest;
  own_high = top;
  return true;
}

}  // namespace happy
