// How much of its stack the calling thread has left: threads and coroutines of 16 KiB look names up with libc.
#pragma once

#include <cstdint>

#include "shim/readable.h"

namespace happy {

// What is known to be stack, from a frame down; asked once for each thread and depth.
inline thread_local constinit std::uintptr_t stack_low = 0;
inline thread_local constinit std::uintptr_t stack_high = 0;

// Whether `needed` bytes below this frame can be used: no guard page is among them. The kernel makes the main
// thread's stack grow when it is asked.
//
// Context:  a system call for each page, the first time; signal-safe.
inline bool has_stack(std::uintptr_t needed) {
  const auto here =
      reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) & ~(smallest_page - 1);
  const std::uintptr_t lowest = here - needed;
  if (lowest >= stack_low && here <= stack_high) return true;
  for (std::uintptr_t at = here; at >= lowest; at -= smallest_page) {
    if (!is_readable_word(at)) return false;
  }
  stack_low = lowest;
  stack_high = here;
  return true;
}

// A lookup's deepest, with the loading of the engine and a trace.
inline constexpr std::uintptr_t lookup_stack = 48 * 1024;

}  // namespace happy
