// Whether memory can be read, as the kernel would judge it.
#pragma once

#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "shim/base/raw_syscall.h"

namespace happy {

inline constexpr std::uintptr_t smallest_page = 4096;

// Its users are told of each system call that is given memory which cannot be read.
inline bool under_valgrind() {
#if defined(__x86_64__)
  const volatile std::uintptr_t request[6] = {0x1001};  // RUNNING_ON_VALGRIND
  std::uintptr_t answer = 0;
  // Nothing at all to a processor.
  __asm__ volatile(
      "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(request)
      : "cc", "memory");
  return answer != 0;
#else
  return false;
#endif
}

// What mincore() takes for memory: it tells less, guard pages are memory.
inline bool is_mapped(std::uintptr_t at) {
  unsigned char ignored = 0;
  const std::uintptr_t page = at & ~(smallest_page - 1);
  return raw_syscall(SYS_mincore, static_cast<long>(page), 1, reinterpret_cast<long>(&ignored)) ==
         0;
}

// The aligned word that `at` lies in, and with it the whole page.
//
// Context:  a system call that reads eight bytes there and then refuses them; signal-safe.
inline bool is_readable_word(std::uintptr_t at) {
  if (under_valgrind()) return is_mapped(at);
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
