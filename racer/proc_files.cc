#include "racer/proc_files.h"

#include <fcntl.h>

#include "resolver/hidden_fd.h"
#include "shim/base/real_functions.h"

namespace happy {

unique_fd open_hidden(const char* path, int flags, openers who) {
  const int fd = real->open(path, flags | O_RDONLY | O_CLOEXEC);
  if (fd < 0 || who == openers::none) return unique_fd(fd);
  result<unique_fd> moved = hide(unique_fd(fd));
  return moved.ok() ? std::move(moved.value()) : unique_fd();
}

}  // namespace happy
