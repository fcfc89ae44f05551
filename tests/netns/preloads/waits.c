// A module whose constructor starts a thread and waits for it: the loader's lock is held all the while. For each call the
// thread is the first in its process.

#define _GNU_SOURCE
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

static void* act(void* unused) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof here;
  struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST}, *list;
  struct epoll_event event = {.events = EPOLLIN};
  int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);
  int set = epoll_create1(0);
  printf("prctl %d\n", prctl(PR_SET_NAME, "worker", 0, 0, 0));
  printf("bind %d\n", bind(udp, (struct sockaddr*)&here, sizeof here));
  printf("getsockname %d\n", getsockname(udp, (struct sockaddr*)&here, &length));
  printf("sendto %zd\n", sendto(udp, "x", 1, 0, (struct sockaddr*)&here, sizeof here));
  printf("poll %d\n", poll(&(struct pollfd){.fd = udp, .events = POLLIN}, 1, 1000));
  printf("recvfrom %zd\n", recvfrom(udp, &(char){0}, 1, 0, NULL, NULL));
  printf("epoll_ctl %d\n", epoll_ctl(set, EPOLL_CTL_ADD, udp, &event));
  printf("listen %d\n", listen(tcp, 1));
  printf("accept %d\n", accept4(udp, NULL, NULL, 0));
  printf("getaddrinfo %d\n", getaddrinfo("127.0.0.1", "7", &numeric, &list));
  for (int i = 0; i < 10; ++i) printf("localhost %d\n", getaddrinfo("localhost", "7", NULL, &list));
  printf("close %d %d %d\n", close(set), close(udp), close(tcp));
  return unused;
}

__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, act, NULL) == 0) pthread_join(thread, NULL);
}
