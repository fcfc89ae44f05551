// Whether memory can be read, as the kernel would judge it.
#pragma once

#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "shim/base/raw_syscall.h"

namespace happy {

inline constexpr std::uintptr_t smallest_page = 4096;

// The aligned word that `at` lies in, and with it the whole page.
//
// Context:  a system call that reads eight bytes there and then refuses them; signal-safe.
inline bool is_readable_word(std::uintptr_t at) {
  constexpr long no_such_way = -1;
  constexpr long size = 8;
  const std::uintptr_t word = at & ~std::uintptr_t{size - 1};
  return raw_syscall(SYS_rt_sigprocmask, no_such_way, static_cast<long>(word), 0, size) != -EFAULT;
}

// All of `size` bytes, if they are no more than a page. Null is not readable.
//
// Context:  asks the kernel where they lie elsewhere than the caller's frame; signal-safe.
inline bool is_readable(const void* data, std::size_t size) {
  if (data == nullptr || size == 0 || size > smallest_page) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t last = first + size - 1;
  const auto stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const bool one_page = first / smallest_page == last / smallest_page;
  if (one_page && first / smallest_page == stack / smallest_page) return true;
  return is_readable_word(last) && (one_page || is_readable_word(first));
}

}  // namespace happy
