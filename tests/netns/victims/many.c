// Looks a name up and connects, COUNT times, in one thread.
//
//   many COUNT NAME PORT
//
// Reports how many connected, how many times the socket behind the fd was another one afterwards, and the process's
// threads at the end.

#include "victim.h"

#include <dirent.h>

static int threads(void) {
  DIR* folder = opendir("/proc/self/task");
  int count = -2;  // "." and ".."
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  int connected = 0, replaced = 0;
  for (int i = 0; i < atoi(argv[1]); ++i) {
    struct addrinfo* list = look_up(argv[2], argv[3]);
    int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
    uint64_t before = cookie(fd);
    connected += !connect(fd, list->ai_addr, list->ai_addrlen) && echo_works(fd);
    replaced += cookie(fd) != before;
    close(fd);
    freeaddrinfo(list);
  }
  printf("connected %d\nreplaced %d\nthreads %d\n", connected, replaced, threads());
  return 0;
}
