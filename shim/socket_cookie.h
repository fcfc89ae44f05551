// SO_COOKIE: the identity of the socket behind `fd`, equal over its copies; 0 if there is none.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstdint>

#include "shim/base/raw_syscall.h"

namespace happy {

inline std::uint64_t cookie_of(int fd) {
  std::uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  const long failed = raw_syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE,
                                  reinterpret_cast<long>(&cookie), reinterpret_cast<long>(&length));
  return failed != 0 ? 0 : cookie;
}

}  // namespace happy
