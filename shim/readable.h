// Whether memory can be read, as the kernel would judge it.
#pragma once

#include <sys/syscall.h>

#include <cerrno>
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

}  // namespace happy
