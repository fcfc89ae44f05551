// A preloaded library that makes one step of the hand-over slow: what may happen in between happens. It stands behind
// libhappy in LD_PRELOAD, so that libhappy's own calls come here.
//
//   SLOW=filter: 600 ms before a socket filter is attached
//   SLOW=dup3:   600 ms before one socket is put over another

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_at(const char* step) {
  const char* slow = getenv("SLOW");
  const struct timespec pause = {0, 600 * 1000 * 1000};
  if (slow && !strcmp(slow, step)) nanosleep(&pause, NULL);
}

int dup3(int from, int to, int flags) {
  wait_at("dup3");
  return (int)syscall(SYS_dup3, from, to, flags);
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  if (level == SOL_SOCKET && name == SO_ATTACH_FILTER) wait_at("filter");
  return (int)syscall(SYS_setsockopt, fd, level, name, value, length);
}
