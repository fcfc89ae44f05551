#include "resolver/history_file.h"

#include <fcntl.h>

#include <cstddef>
#include <cstring>

#include "shim/base/raw_syscall.h"
#include "shim/base/unique_fd.h"

namespace happy {
namespace {

// With the version of the format.
constexpr char heading[64] = "happy-history 1\n";

constexpr mode_t all_permissions = 07777;

uid_t effective_user() { return static_cast<uid_t>(raw_syscall(SYS_geteuid)); }

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

bool may_keep_history(const struct stat& folder, uid_t user) {
  return S_ISDIR(folder.st_mode) && folder.st_uid == user &&
         (folder.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_history(const struct stat& file, uid_t user) {
  return S_ISREG(file.st_mode) && file.st_uid == user && file.st_nlink == 1 &&
         (file.st_mode & all_permissions) == (S_IRUSR | S_IWUSR) &&
         file.st_size == sizeof(history_image);
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
  identity now;
  if (is_kept() && real->stat(path_, &s) == 0) now = identity_of(s);
  if (now.inode == known_.inode && now.size == known_.size &&
      same_time(now.modified, known_.modified)) {
    return false;
  }
  known_ = now;
  return true;
}

// By way of the folder, so that what was judged is what is used. -1: no such file.
int history_file::open(int flags, struct stat& file) const {
  constexpr int careful = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  struct stat folder {};
  const unique_fd in(real->open(folder_, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!in.valid() || real->fstat(in.get(), &folder) != 0) return -1;
  if (!may_keep_history(folder, effective_user())) return -1;
  unique_fd fd(as_libc(raw_syscall(SYS_openat, in.get(), reinterpret_cast<long>(history_file_name),
                                   flags | careful, S_IRUSR | S_IWUSR)));
  if (!fd.valid() || real->fstat(fd.get(), &file) != 0) return -1;
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
  struct stat file {};
  const unique_fd fd(open(O_RDONLY, file));
  return fd.valid() && is_history(file, effective_user()) && load(fd.get(), out);
}

bool history_file::open_to_change(history_image& image, int& fd, bool& fresh) {
  errno_saver keep;
  if (!is_kept()) return false;
  struct stat file {};
  unique_fd opened(open(O_RDWR | O_CREAT, file));
  if (!opened.valid()) return false;
  fresh = file.st_size == 0;
  if (fresh) {
    file.st_size = sizeof image;  // as it will be
    image = {};
    std::memcpy(image.heading, heading, sizeof heading);
  }
  if (!is_history(file, effective_user()) || (!fresh && !load(opened.get(), image))) return false;
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
  if (real->fstat(fd, &file) == 0) known_ = identity_of(file);  // what this process knows already
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
