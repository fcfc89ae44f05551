// A socket that the program does not know of. Programs close descriptors that are not theirs
// (closefrom, daemons) and get the number again for something of their own, so whoever uses one after the
// program may have run asks first whether the number still is the socket it was.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <utility>

#include "resolver/hidden_fd.h"
#include "shim/base/guards.h"
#include "shim/base/real_functions.h"
#include "shim/base/result.h"

namespace happy {

// SO_COOKIE: the identity of the socket behind `fd`, equal over dups; 0 if there is none.
inline std::uint64_t socket_cookie(int fd) {
  std::uint64_t value = 0;
  socklen_t length = sizeof value;
  return real->getsockopt(fd, SOL_SOCKET, SO_COOKIE, &value, &length) == 0 ? value : 0;
}

class guarded_socket {
 public:
  guarded_socket() = default;
  guarded_socket(guarded_socket&& from) noexcept
      : fd_(std::exchange(from.fd_, -1)), cookie_(std::exchange(from.cookie_, 0)) {}
  guarded_socket& operator=(guarded_socket&& from) noexcept {
    if (this != &from) {
      reset();
      fd_ = std::exchange(from.fd_, -1);
      cookie_ = std::exchange(from.cookie_, 0);
    }
    return *this;
  }
  guarded_socket(const guarded_socket&) = delete;
  guarded_socket& operator=(const guarded_socket&) = delete;
  ~guarded_socket() { reset(); }

  // Owns `fd` where it is; fails with errno if that is negative.
  static result<guarded_socket> own(int fd) {
    if (fd < 0) return result<guarded_socket>::failure(errno);
    guarded_socket s;
    s.fd_ = fd;
    s.cookie_ = socket_cookie(fd);
    return s;
  }

  // Moves `fd` out of the program's way and owns it; on failure `fd` is closed.
  static result<guarded_socket> adopt(int fd) {
    if (fd < 0) return result<guarded_socket>::failure(errno);
    result<unique_fd> moved = happy::hide(unique_fd(fd));
    if (!moved.ok()) return result<guarded_socket>::failure(moved.error());
    return own(moved.value().release());
  }

  // Moves it out of the program's way, where it is the same socket still. False if that fails, and then
  // it is closed, or if the number is no longer ours.
  bool hide() {
    if (!is_ours()) return false;
    result<unique_fd> moved = happy::hide(unique_fd(std::exchange(fd_, -1)));
    if (moved.ok()) fd_ = moved.value().release();
    return moved.ok();
  }

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  std::uint64_t cookie() const { return cookie_; }

  // Whether the number still is this socket.
  // A question that the kernel does not answer (no memory, a sandbox) is no sign that it is another.
  bool is_ours() const {
    if (fd_ < 0) return false;
    errno_saver keep;
    errno = 0;
    const std::uint64_t now = socket_cookie(fd_);
    const bool unanswered = now == 0 && errno != EBADF && errno != ENOTSOCK;
    return now == cookie_ || cookie_ == 0 || unanswered;
  }

  // For who has just asked is_ours().
  void close_unasked() {
    if (fd_ < 0) return;
    errno_saver keep;
    real->close(release());
  }

  int release() {
    cookie_ = 0;
    return std::exchange(fd_, -1);
  }

  // Closes the socket, unless the number is no longer ours.
  void reset() {
    if (fd_ < 0) return;
    errno_saver keep;
    if (is_ours()) close_unasked();
    release();
  }

 private:
  int fd_ = -1;
  std::uint64_t cookie_ = 0;
};

}  // namespace happy
