// Looks a name up and connects, COUNT times, in one thread.
//
//   many COUNT NAME PORT
//
// Reports how many connected, how many times the socket behind the fd was another one afterwards,
// the process's threads at the end, and the fds it has more than at its start.

#include "victim.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  int connected = 0, replaced = 0, fds_before = open_fds();
  for (int i = 0; i < atoi(argv[1]); ++i) {
    struct addrinfo* list = look_up(argv[2], argv[3]);
    int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
    uint64_t before = cookie(fd);
    connected += !connect(fd, list->ai_addr, list->ai_addrlen) && echo_works(fd);
    replaced += cookie(fd) != before;
    close(fd);
    freeaddrinfo(list);
  }
  printf("connected %d\nreplaced %d\nthreads %d\n", connected, replaced,
         entries("/proc/self/task"));
  printf("fds_more %d\n", fds_more_than(fds_before));
  return 0;
}
