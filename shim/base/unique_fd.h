// A file descriptor that closes itself. Never a bool: 0 is a valid descriptor.
#pragma once

#include <utility>

#include "shim/base/guards.h"
#include "shim/base/real_functions.h"

namespace happy {

class unique_fd {
 public:
  unique_fd() = default;
  explicit unique_fd(int fd) : fd_(fd) {}
  unique_fd(unique_fd&& from) noexcept : fd_(from.release()) {}
  unique_fd& operator=(unique_fd&& from) noexcept {
    if (this != &from) reset(from.release());
    return *this;
  }
  unique_fd(const unique_fd&) = delete;
  unique_fd& operator=(const unique_fd&) = delete;
  ~unique_fd() { reset(); }

  explicit operator bool() const = delete;
  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

  // Closes what is held (errno survives) and holds `fd` instead.
  void reset(int fd = -1) {
    if (fd_ >= 0) {
      errno_saver keep;
      real->close(fd_);
    }
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace happy
