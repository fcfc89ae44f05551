// A socket that is disconnected in mid-connect, and connected to something else: disconnected NAME PORT ADDRESS
//
// On the way, while a race may be on, waiting calls with arguments that the kernel refuses.

#include "hardening.h"

#include <arpa/inet.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/select.h>

static void say(const char* what, int result) {
  printf("%s %s\n", what, result < 0 ? strerrorname_np(errno) : result ? "ready" : "nothing");
}

static void refused_calls(int fd) {
  struct pollfd p = {fd, POLLOUT, 0};
  struct pollfd* volatile nowhere = (struct pollfd*)8;  // the compiler is not to know
  volatile nfds_t too_many = 1u << 30;
  const struct timespec negative = {-1, 0}, odd = {0, 2000000000};
  struct timeval before = {-1, 0};
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  say("poll of nothing", poll(nowhere, 1, 0));
  say("poll of too many", poll(&p, too_many, 0));
  say("ppoll with a negative time", ppoll(&p, 1, &negative, NULL));
  say("ppoll with an odd time", ppoll(&p, 1, &odd, NULL));
  say("select with a negative time", select(fd + 1, NULL, &set, NULL, &before));
  say("pselect with an odd time", pselect(fd + 1, NULL, &set, NULL, &odd, NULL));
}

// Longer than any clock counts: only the alarm ends it.
static void endless_call(int fd) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  struct timespec endless = {LONG_MAX, 0};
  signal_after(SIGALRM, 50);
  say("pselect with an endless time", pselect(fd + 1, &set, NULL, NULL, &endless, NULL));
}

static void nothing(int number) { (void)number; }

int main(int argc, char** argv) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
  if (argc < 4 || getaddrinfo(argv[1], argv[2], &hints, &list)) return 2;
  handle(SIGALRM, nothing, 0);
  int fd = socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
  say("connect", connect(fd, list->ai_addr, list->ai_addrlen));
  refused_calls(fd);
  endless_call(fd);
  const struct sockaddr disconnect = {.sa_family = AF_UNSPEC};
  say("disconnect", connect(fd, &disconnect, sizeof disconnect));
  struct sockaddr_in6 other = {.sin6_family = AF_INET6, .sin6_port = htons(7)};
  inet_pton(AF_INET6, argv[3], &other.sin6_addr);
  say("connect", connect(fd, (struct sockaddr*)&other, sizeof other));
  struct pollfd p = {fd, POLLOUT, 0};
  say("poll", poll(&p, 1, 700));
  socklen_t length = sizeof other;
  say("peer", getpeername(fd, (struct sockaddr*)&other, &length));
  return 0;
}
