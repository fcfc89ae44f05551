// A socket that is disconnected in mid-connect, and connected to something else: disconnected NAME PORT ADDRESS
//
// On the way, while a race may be on, waiting calls with arguments that the kernel refuses.

#include "hardening.h"

#include <arpa/inet.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/mman.h>
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

static void unreadable_arguments(int fd) {
  fd_set* volatile nowhere = (fd_set*)8;
  struct timespec* volatile no_time = (struct timespec*)8;
  struct timeval soon = {0, 20000};
  const struct timespec soon_too = {0, 20000000};
  fd_set* constant =
      mmap(NULL, sizeof *constant, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  FD_SET(fd, constant);
  mprotect(constant, sizeof *constant, PROT_READ);
  struct epoll_event event;
  int set = epoll_create1(EPOLL_CLOEXEC);
  say("select of nothing", select(fd + 1, nowhere, NULL, NULL, &soon));
  say("pselect of nothing", pselect(fd + 1, NULL, NULL, nowhere, &soon_too, NULL));
  say("select of what is constant", select(fd + 1, constant, NULL, NULL, &soon));
  say("pselect of what is constant", pselect(fd + 1, NULL, constant, NULL, &soon_too, NULL));
  say("epoll_wait of nothing", epoll_wait(set, (struct epoll_event*)nowhere, 1, 0));
  say("epoll_pwait2 with no time", epoll_pwait2(set, &event, 1, no_time, NULL));
  close(set);
}

static void odd_messages(int fd) {
  union {
    char room[64];
    struct cmsghdr part;
  } control = {.part = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
  static const size_t lengths[] = {0, 1, CMSG_LEN(0) - 1, CMSG_LEN(0), CMSG_LEN(1), 1000, SIZE_MAX};
  void* volatile nowhere = (void*)8;
  struct msghdr message = {.msg_control = &control, .msg_controllen = sizeof control};
  struct mmsghdr many = {.msg_hdr = message};
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return;
  memcpy(CMSG_DATA(&control.part), &fd, sizeof fd);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    control.part.cmsg_len = lengths[i];
    say("sendmsg of an odd length", (int)sendmsg(pair[0], &message, 0));
  }
  message.msg_control = nowhere;
  say("sendmsg of no control", (int)sendmsg(pair[0], &message, 0));
  say("sendmsg of nothing", (int)sendmsg(pair[0], nowhere, 0));
  say("sendmmsg of nothing", sendmmsg(pair[0], nowhere, 1, 0));
  say("sendmmsg of no message", sendmmsg(pair[0], &many, 0, 0));
  close(pair[0]), close(pair[1]);
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
  unreadable_arguments(fd);
  odd_messages(fd);
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
