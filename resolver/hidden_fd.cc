#include "resolver/hidden_fd.h"

#include <fcntl.h>

namespace happy {
namespace {

constexpr int bash_script_fd = 255;

}  // namespace

result<unique_fd> hide(unique_fd fd) {
  if (fd.get() >= first_hidden_fd && fd.get() != bash_script_fd) {
    if (!leaves_headroom(fd.get())) return result<unique_fd>::failure(EMFILE);
    return fd;
  }
  unique_fd moved(real->fcntl(fd.get(), F_DUPFD_CLOEXEC, first_hidden_fd));
  if (moved.get() == bash_script_fd) {
    moved.reset(real->fcntl(fd.get(), F_DUPFD_CLOEXEC, bash_script_fd + 1));
  }
  if (!moved.valid()) {
    // EINVAL is what the kernel says when the lowest number wanted is beyond the limit.
    return result<unique_fd>::failure(errno == EINVAL ? EMFILE : errno);
  }
  if (!leaves_headroom(moved.get())) return result<unique_fd>::failure(EMFILE);
  return moved;
}

}  // namespace happy
