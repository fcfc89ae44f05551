// Scopes that undo themselves.
#pragma once

#include <cerrno>

namespace happy {

// The caller's errno survives whatever happens inside.
class errno_saver {
 public:
  errno_saver() : saved_(errno) {}
  ~errno_saver() { errno = saved_; }
  errno_saver(const errno_saver&) = delete;
  errno_saver& operator=(const errno_saver&) = delete;

 private:
  int saved_;
};

}  // namespace happy
