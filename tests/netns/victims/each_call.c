// One lookup and one connection, with everything that a fault inside libhappy could spoil for the program.
//
//   each_call NAME PORT
//
// Exit status 0: connected and echoed. What it prints is the same whichever address that was.

#include "victim.h"

#include <fcntl.h>

static int try_all(const struct addrinfo* list) {
  for (; list; list = list->ai_next) {
    int fd = socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC, list->ai_protocol);
    errno = 77;
    if (connect(fd, list->ai_addr, list->ai_addrlen) == 0) return fd;
    if (errno != ETIMEDOUT) printf("errno %s\n", strerrorname_np(errno));
    close(fd);
  }
  return -1;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  int fds_before = open_fds();
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo* list = NULL;
  printf("lookup %d\n", getaddrinfo(argv[1], argv[2], &hints, &list));
  int fd = list ? try_all(list) : -1;
  if (fd < 0) return 1;
  printf("errno after success %d\n", errno);
  printf("cloexec %d nonblock %d\n", fcntl(fd, F_GETFD), (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  int echoed = echo_works(fd);
  close(fd);
  freeaddrinfo(list);
  printf("fds_more %d\n", fds_more_than(fds_before));
  return !echoed;
}
