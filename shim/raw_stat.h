// stat() and fstat() without libc (see base/raw_syscall.h): 0, or -1 and errno.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "shim/base/raw_syscall.h"

namespace happy {

#if defined(__x86_64__) || defined(__aarch64__)  // where libc's struct is the kernel's

inline int raw_stat(const char* path, struct stat& out) {
  out = {};
  return as_libc(raw_syscall(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path),
                             reinterpret_cast<long>(&out), 0));
}

inline int raw_fstat(int fd, struct stat& out) {
  out = {};
  return as_libc(raw_syscall(SYS_fstat, fd, reinterpret_cast<long>(&out)));
}

#else

inline int raw_stat(const char* path, struct stat& out) { return ::stat(path, &out); }
inline int raw_fstat(int fd, struct stat& out) { return ::fstat(fd, &out); }

#endif

}  // namespace happy
