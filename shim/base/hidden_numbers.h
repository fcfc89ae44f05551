// Which descriptor numbers are ours: out of the way of the program's own.
#pragma once

#include <sys/resource.h>

#include "shim/base/raw_syscall.h"

namespace happy {

// Above what shell scripts and daemons address by number, below the 64 that the kernel's first fd
// table holds (growing it with a second thread alive stalls for milliseconds).
inline constexpr int first_hidden_fd = 24;

// Numbers that stay free under RLIMIT_NOFILE: the program's headroom is worth more than a race.
inline constexpr int fd_headroom = 64;

// Whether so many do where `fd` is one of ours. False if the kernel does not say.
//
// Context:  one system call; signal-safe; errno survives.
inline bool leaves_headroom(int fd) {
  rlimit limit{};
  return raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, reinterpret_cast<long>(&limit)) == 0 &&
         static_cast<rlim_t>(fd) + fd_headroom < limit.rlim_cur;
}

}  // namespace happy
