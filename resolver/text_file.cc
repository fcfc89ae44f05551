#include "resolver/text_file.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "shim/base/real_functions.h"
#include "shim/base/unique_fd.h"

namespace happy {
namespace {

// What glibc takes for "there is no such file"; anything else is a shortage that may pass.
bool means_no_file(int error) {
  return error == EACCES || error == EISDIR || error == ELOOP || error == ENOENT ||
         error == ENOTDIR || error == EPERM;
}

}  // namespace

text_file::identity text_file::identity_of(const struct stat& s) {
  return {s.st_dev, version_of(s), s.st_ctim};
}

bool text_file::same(const identity& a, const identity& b) {
  return a.device == b.device && a.version == b.version && same_time(a.changed, b.changed);
}

void text_file::become(identity id, bool readable, std::string text) {
  known_ = true;
  readable_ = readable;
  identity_ = id;
  text_ = std::make_shared<const std::string>(std::move(text));
}

// False on a read error, and when the file is not as long as fstat() said: it is being written.
bool text_file::load(int fd, std::size_t size, std::string& text) const {
  text.resize(size + 1);  // one more byte than expected, to see the end
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t count = real->read(fd, text.data() + filled, text.size() - filled);
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    filled += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return filled == size;
}

// Whether the path leads to what is known already. What cannot be read is looked at again each time.
bool text_file::is_unchanged() const {
  if (!known_) return false;
  struct stat s {};
  if (real->stat(path_.c_str(), &s) != 0)
    return identity_.version.size == -1 && readable_ && means_no_file(errno);
  return identity_.version.size != -1 && same(identity_, identity_of(s));
}

bool text_file::refresh() {
  errno_saver keep;
  if (is_unchanged()) return false;
  const unique_fd fd(real->open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) {
    const bool none = means_no_file(errno);
    const bool as_before = known_ && identity_.version.size == -1 && readable_ == none;
    become({}, none, {});
    return !as_before;
  }
  struct stat s {};
  if (real->fstat(fd.get(), &s) != 0 || !S_ISREG(s.st_mode) ||
      std::cmp_greater(s.st_size, limit_)) {
    const bool as_before = known_ && identity_.version.size == -1 && !readable_;
    become({}, false, {});
    return !as_before;
  }
  if (known_ && same(identity_, identity_of(s))) return false;
  std::string text;
  const bool whole = load(fd.get(), static_cast<std::size_t>(s.st_size), text);
  // What was caught in the middle of being written is read again at the next lookup.
  become(whole ? identity_of(s) : identity{}, whole, whole ? std::move(text) : std::string{});
  return true;
}

}  // namespace happy
