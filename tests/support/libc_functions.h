// The table of real functions for tests: libc's own, in which a test replaces what it wants to fail.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "shim/base/real_functions.h"

namespace happy::test {

inline happy_real libc_functions() {
  happy_real table{};
  table.getaddrinfo = ::getaddrinfo;
  table.freeaddrinfo = ::freeaddrinfo;
  table.connect = ::connect;
  table.socket = ::socket;
  table.bind = ::bind;
  table.shutdown = ::shutdown;
  table.close = ::close;
  table.dup3 = ::dup3;
  table.fcntl = ::fcntl;
  table.getsockopt = ::getsockopt;
  table.setsockopt = ::setsockopt;
  table.getsockname = ::getsockname;
  table.poll = ::poll;
  table.open = ::open;
  table.stat = ::stat;
  table.fstat = ::fstat;
  table.read = ::read;
  table.recvfrom = ::recvfrom;
  table.sigaction = ::sigaction;
  table.pthread_create = ::pthread_create;
  table.clock_gettime = ::clock_gettime;
  return table;
}

// While it lives, `real` is the table given.
class with_functions {
 public:
  explicit with_functions(const happy_real& table = libc_functions())
      : table_(table), previous_(real) {
    real = &table_;
  }
  ~with_functions() { real = previous_; }
  with_functions(const with_functions&) = delete;
  with_functions& operator=(const with_functions&) = delete;

 private:
  happy_real table_;
  const happy_real* previous_;
};

// How many descriptors of at least `lowest` this process has open, but for the one that counts.
inline int open_descriptors(int lowest = 0) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return -1;
  int count = 0;
  while (const dirent* entry = readdir(folder)) {
    const int fd = entry->d_name[0] == '.' ? -1 : std::atoi(entry->d_name);
    if (fd >= lowest && fd != dirfd(folder)) ++count;
  }
  closedir(folder);
  return count;
}

}  // namespace happy::test
