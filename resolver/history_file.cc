#include "resolver/history_file.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "shim/base/raw_syscall.h"
#include "shim/base/unique_fd.h"

namespace happy {
namespace {

// With the version of the format.
constexpr char heading[64] = "happy-history 1\n";

constexpr mode_t all_permissions = 07777;
constexpr mode_t permissions = S_IRUSR | S_IWUSR;

uid_t effective_user() { return static_cast<uid_t>(raw_syscall(SYS_geteuid)); }

// Beyond it a write raises a signal.
bool may_be_as_large(std::size_t size) {
  rlimit limit{};
  return raw_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, reinterpret_cast<long>(&limit)) == 0 &&
         limit.rlim_cur >= size;
}

}  // namespace

bool may_keep_history(const struct stat& folder, uid_t user) {
  return S_ISDIR(folder.st_mode) && folder.st_uid == user &&
         (folder.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_history(const struct stat& file, uid_t user) {
  return S_ISREG(file.st_mode) && file.st_uid == user && file.st_nlink == 1 &&
         (file.st_mode & all_permissions) == permissions && file.st_size == sizeof(history_image);
}

bool may_replace_history(const struct stat& file, uid_t user) {
  return S_ISREG(file.st_mode) && file.st_uid == user;
}

bool history_file::set_folder(const char* folder) {
  path_[0] = 0;
  if (folder == nullptr || folder[0] != '/') return false;
  const std::size_t length = std::strlen(folder);
  if (length >= sizeof folder_) return false;
  std::memcpy(folder_, folder, length + 1);
  std::memcpy(path_, folder, length);
  path_[length] = '/';
  std::memcpy(path_ + length + 1, history_file_name, sizeof history_file_name);
  return true;
}

bool history_file::has_changed() {
  errno_saver keep;
  struct stat s {};
  file_version now;
  if (is_kept() && real->stat(path_, &s) == 0) now = version_of(s);
  if (now == known_) return false;
  known_ = now;
  return true;
}

// What was judged is what is used: everything goes by way of it. -1: no such folder.
int history_file::open_folder() const {
  struct stat folder {};
  unique_fd in(real->open(folder_, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!in.valid() || real->fstat(in.get(), &folder) != 0) return -1;
  return may_keep_history(folder, effective_user()) ? in.release() : -1;
}

int history_file::open_in(int folder, int flags, struct stat& file) {
  constexpr int careful = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  unique_fd fd(as_libc(raw_syscall(SYS_openat, folder, reinterpret_cast<long>(history_file_name),
                                   flags | careful, permissions)));
  if (!fd.valid() || real->fstat(fd.get(), &file) != 0) return -1;
  return fd.release();
}

// In the place of what is there, if it may go. Nobody else can put something there meanwhile: the folder is the user's.
int history_file::make_in(int folder, struct stat& file) {
  struct stat old {};
  if (unique_fd(open_in(folder, O_PATH, old)).valid()) {
    if (!may_replace_history(old, effective_user())) return -1;
    if (raw_syscall(SYS_unlinkat, folder, reinterpret_cast<long>(history_file_name), 0) != 0)
      return -1;
  }
  unique_fd fd(open_in(folder, O_RDWR | O_CREAT | O_EXCL, file));
  if (!fd.valid()) return -1;
  // The program's umask may have taken permissions away.
  if ((file.st_mode & all_permissions) != permissions) {
    if (raw_syscall(SYS_fchmod, fd.get(), permissions) != 0) return -1;
    if (real->fstat(fd.get(), &file) != 0) return -1;
  }
  return fd.release();
}

bool history_file::load(int fd, history_image& out) {
  const ssize_t size = real->read(fd, &out, sizeof out);
  return size == sizeof out && std::memcmp(out.heading, heading, sizeof heading) == 0;
}

bool history_file::store(int fd, const void* data, std::size_t size, std::size_t at) {
  return raw_syscall(SYS_pwrite64, fd, reinterpret_cast<long>(data), static_cast<long>(size),
                     static_cast<long>(at)) == static_cast<long>(size);
}

bool history_file::read(history_image& out) {
  errno_saver keep;
  if (!is_kept()) return false;
  const unique_fd folder(open_folder());
  if (!folder.valid()) return false;
  struct stat file {};
  const unique_fd fd(open_in(folder.get(), O_RDONLY, file));
  return fd.valid() && is_history(file, effective_user()) && load(fd.get(), out);
}

bool history_file::open_to_change(history_image& image, int& fd, bool& fresh) {
  errno_saver keep;
  if (!is_kept() || !may_be_as_large(sizeof image)) return false;
  const unique_fd folder(open_folder());
  if (!folder.valid()) return false;
  struct stat file {};
  unique_fd opened(open_in(folder.get(), O_RDWR, file));
  if (!opened.valid() && errno != ENOENT && errno != EACCES) return false;
  const bool empty = opened.valid() && file.st_size == 0;  // another process has just made it
  if (empty) file.st_size = sizeof image;                  // as it will be
  const bool usable = opened.valid() && is_history(file, effective_user());
  const bool harmed = !usable || (!empty && !load(opened.get(), image));
  fresh = empty || harmed;
  if (harmed) {
    opened.reset(make_in(folder.get(), file));
    if (!opened.valid()) return false;
  }
  if (fresh) {
    image = {};
    std::memcpy(image.heading, heading, sizeof heading);
  }
  fd = opened.release();
  return true;
}

void history_file::finish(int fd, const history_image& image, std::uint64_t which, bool fresh) {
  errno_saver keep;
  const unique_fd opened(fd);
  if (fresh) {
    store(fd, &image, sizeof image, 0);
  } else {
    store_records(fd, image, which);
  }
  struct stat file {};
  if (real->fstat(fd, &file) == 0) known_ = version_of(file);  // what this process knows already
}

bool history_file::store_records(int fd, const history_image& image, std::uint64_t which) {
  bool complete = true;
  for (std::size_t i = 0; i < max_history_records; ++i) {
    if ((which >> i & 1) == 0) continue;
    const std::size_t at = offsetof(history_image, records) + i * sizeof(history_record);
    complete = store(fd, &image.records[i], sizeof image.records[i], at) && complete;
  }
  return complete;
}

}  // namespace happy
