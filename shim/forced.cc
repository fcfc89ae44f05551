#include "shim/forced.h"

#include <cerrno>
#include <cstdarg>
#include <cstring>

namespace happy {
namespace {

decltype(happy_real::open) true_open = nullptr;

int no_thread(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) { return EAGAIN; }

int no_dup3(int, int, int) {
  errno = EBADF;
  return -1;
}

int no_socket(int, int, int) {
  errno = EMFILE;
  return -1;
}

int no_proc(const char* path, int flags, ...) {
  if (std::strncmp(path, "/proc/", 6) == 0) {
    errno = ENOENT;
    return -1;
  }
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return true_open(path, flags, mode);
}

}  // namespace

void force_failures(happy_real& table, std::uint32_t force) {
  if ((force & HAPPY_FORCE_FAIL_THREAD) != 0) table.pthread_create = no_thread;
  if ((force & HAPPY_FORCE_FAIL_DUP3) != 0) table.dup3 = no_dup3;
  if ((force & HAPPY_FORCE_FAIL_SOCKET) != 0) table.socket = no_socket;
  if ((force & HAPPY_FORCE_FAIL_PROC) != 0) {
    true_open = table.open;
    table.open = no_proc;
  }
}

}  // namespace happy
