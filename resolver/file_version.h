// What stat() tells of a file without its being read: other values, and it has been written or replaced.
#pragma once

#include <sys/stat.h>

namespace happy {

struct file_version {
  ino_t inode = 0;
  off_t size = -1;  // of none
  timespec modified{};
};

inline file_version version_of(const struct stat& s) { return {s.st_ino, s.st_size, s.st_mtim}; }

inline bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

inline bool operator==(const file_version& a, const file_version& b) {
  return a.inode == b.inode && a.size == b.size && same_time(a.modified, b.modified);
}

}  // namespace happy
