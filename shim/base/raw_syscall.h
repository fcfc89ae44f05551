// System calls without libc: for what must work before libc is ready, in vfork children, and behind
// hooks of libc's own syscall(). Returns what the kernel returns: a value, or -errno.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace happy {

#if defined(__x86_64__)

inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

#elif defined(__aarch64__)

inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}

#else

inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
  const long result = ::syscall(number, a, b, c, d, e, f);
  return result == -1 ? -errno : result;
}

#endif

// The calling process as the kernel counts it: also in a vfork child, which shares our memory.
inline pid_t raw_getpid() { return static_cast<pid_t>(raw_syscall(SYS_getpid)); }
inline pid_t raw_gettid() { return static_cast<pid_t>(raw_syscall(SYS_gettid)); }

// libc's convention (-1 and errno) for a raw result.
inline int as_libc(long raw) {
  if (raw >= 0) return static_cast<int>(raw);
  errno = static_cast<int>(-raw);
  return -1;
}

}  // namespace happy
