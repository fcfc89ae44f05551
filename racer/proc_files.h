// Files and folders of /proc.
#pragma once

#include <sys/syscall.h>

#include <cstdint>
#include <cstdlib>

#include "shim/base/raw_syscall.h"
#include "shim/base/unique_fd.h"

namespace happy {

// Whether another thread may be about to open a file, and is to get the number that it would get without us.
enum class openers : std::uint8_t { others, none };

// Opens it to be read, out of the way of the program's own files. Not valid: it cannot be had.
unique_fd open_hidden(const char* path, int flags, openers who = openers::others);

// As getdents64() gives it.
struct directory_entry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[1];
};

// Calls `visit(number)` for each entry whose name is a number, but for the folder's own descriptor; false if some are
// left out.
template <typename Function>
bool for_each_number_in(const unique_fd& folder, Function&& visit) {
  alignas(directory_entry) char buffer[2048]{};
  for (;;) {
    const long size = raw_syscall(SYS_getdents64, folder.get(), reinterpret_cast<long>(buffer),
                                  static_cast<long>(sizeof buffer));
    if (size <= 0) return size == 0;
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const directory_entry*>(buffer + at);
      at += entry->size;
      if (entry->name[0] < '0' || entry->name[0] > '9') continue;
      const int number = std::atoi(entry->name);
      if (number != folder.get()) visit(number);
    }
  }
}

}  // namespace happy
