// What a program set on its socket before connect() must be there after it, whoever won.
//
//   state NAME PORT
//
// Connects to the name's first address only; reports the socket's state and what became of the fd table.

#include "victim.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  int fds_before = open_fds();
  struct addrinfo* list = look_up(argv[1], argv[2]);
  int fd = socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC, list->ai_protocol);
  struct timeval timeout = {.tv_sec = 9};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 77);
  set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, 0x10);
  uint64_t before = cookie(fd);
  int failed = connect(fd, list->ai_addr, list->ai_addrlen);

  struct sockaddr_storage local;
  socklen_t length = sizeof local;
  getsockname(fd, (struct sockaddr*)&local, &length);
  int ipv6 = local.ss_family == AF_INET6;
  printf("connect %s\n", failed ? strerrorname_np(errno) : "connected");
  printf("socket %s\n", cookie(fd) == before ? "kept" : "replaced");
  printf("peer %s\n", peer_text(fd));
  printf("local %s\n", address_text((struct sockaddr*)&local));
  printf("cloexec %d\n", (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  printf("nonblock %d\n", (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  printf("nodelay %d\n", option(fd, IPPROTO_TCP, TCP_NODELAY));
  printf("keepalive %d\n", option(fd, SOL_SOCKET, SO_KEEPALIVE));
  printf("keepidle %d\n", option(fd, IPPROTO_TCP, TCP_KEEPIDLE));
  printf("class %d\n",
         ipv6 ? option(fd, IPPROTO_IPV6, IPV6_TCLASS) : option(fd, IPPROTO_IP, IP_TOS));
  length = sizeof timeout;
  getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, &length);
  printf("sndtimeo %ld.%06ld\n", (long)timeout.tv_sec, (long)timeout.tv_usec);
  printf("so_error %d\n", option(fd, SOL_SOCKET, SO_ERROR));
  printf("echo %s\n", echo_works(fd) ? "works" : "fails");
  close(fd);
  printf("fds_more %d\n", fds_more_than(fds_before));
  return failed;
}
