// pending NAME PORT COUNT [FILLERS]: looks NAME up once and connects to its first address COUNT times without blocking.
//
// Prints "connected_us N", the median time from connect() until poll() says that the socket can be written to. With
// FILLERS the socket is waited for in an epoll set, beside that many others that never are ready.
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

static int set = -1;

static void wait_until_writable(int fd) {
  enum { PATIENCE_MS = 5000 };
  struct pollfd one = {.fd = fd, .events = POLLOUT};
  struct epoll_event event = {.events = EPOLLOUT};
  if (set < 0) {
    if (poll(&one, 1, PATIENCE_MS) != 1) give_up("poll");
    return;
  }
  if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0) give_up("epoll_ctl");
  if (epoll_wait(set, &event, 1, PATIENCE_MS) != 1) give_up("epoll_wait");
}

static double connect_once(const struct addrinfo* to) {
  const struct linger at_once = {1, 0};  // no TIME_WAIT, which would use the ports up
  const int fd = socket(to->ai_family, to->ai_socktype | SOCK_NONBLOCK, to->ai_protocol);
  int error = 0;
  socklen_t length = sizeof error;
  const double start = now_us();
  connect(fd, to->ai_addr, to->ai_addrlen);
  wait_until_writable(fd);
  const double took = now_us() - start;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) give_up("connect");
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(fd);
  return took;
}

static int by_size(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

int main(int words, char** word) {
  enum { MAX_COUNT = 10000 };
  static double took[MAX_COUNT];
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo* list;
  const int count = words > 3 ? atoi(word[3]) : 0;
  if (count < 1 || count > MAX_COUNT) return 2;
  if (words > 4) {
    struct epoll_event never = {.events = EPOLLIN};
    set = epoll_create1(EPOLL_CLOEXEC);
    for (int i = atoi(word[4]); i > 0; --i) {
      int ends[2];
      if (pipe(ends) != 0 || epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &never) != 0) give_up("pipe");
    }
  }
  if (getaddrinfo(word[1], word[2], &hints, &list) != 0) return 1;
  for (int i = 0; i < count; ++i) took[i] = connect_once(list);
  qsort(took, (size_t)count, sizeof *took, by_size);
  printf("connected_us %.2f\n", took[count / 2]);
  return 0;
}
