// believes ADDRESS PORT blocking|non-blocking: a program that knows of IPv4 alone, with room for 16 bytes
// of an address, and looks at its socket, a copy of it and a child's.

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// What lies behind the room for the address must not be touched.
struct guarded {
  struct sockaddr_in address;
  unsigned char behind[16];
};

static void look(const char* who, int fd) {
  struct guarded peer;
  struct guarded own;
  memset(&peer, 0xa5, sizeof peer);
  memset(&own, 0xa5, sizeof own);
  socklen_t peer_length = sizeof peer.address;
  socklen_t own_length = sizeof own.address;
  int domain = 0;
  socklen_t length = sizeof domain;
  const int tos = 16;
  int class = 0;
  if (getpeername(fd, (struct sockaddr*)&peer.address, &peer_length) != 0 ||
      getsockname(fd, (struct sockaddr*)&own.address, &own_length) != 0 ||
      getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 ||
      setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos) != 0 ||
      getsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &class, &length) != 0) {
    printf("%s error %d\n", who, errno);
    exit(1);
  }
  for (unsigned i = 0; i < sizeof peer.behind; ++i) {
    if (peer.behind[i] != 0xa5 || own.behind[i] != 0xa5) exit(3);
  }
  char peer_text[64];
  char own_text[64];
  inet_ntop(AF_INET, &peer.address.sin_addr, peer_text, sizeof peer_text);
  inet_ntop(AF_INET, &own.address.sin_addr, own_text, sizeof own_text);
  printf("%s peer %d %u %s:%d own %d %u %s domain %d tos %d\n", who, peer.address.sin_family,
         (unsigned)peer_length, peer_text, ntohs(peer.address.sin_port), own.address.sin_family,
         (unsigned)own_length, own_text, domain, class);
  fflush(stdout);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int type = strcmp(argv[3], "blocking") == 0 ? 0 : SOCK_NONBLOCK;
  const int fd = socket(AF_INET, SOCK_STREAM | type, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
  inet_pton(AF_INET, argv[1], &to.sin_addr);
  if (connect(fd, (struct sockaddr*)&to, sizeof to) != 0) {
    if (errno != EINPROGRESS) return 1;
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    int error = 1;
    socklen_t length = sizeof error;
    if (poll(&wait, 1, 3000) != 1 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0 ||
        error != 0)
      return 1;
  }
  look("socket", fd);
  look("copy", dup(fd));
  if (fork() == 0) {
    look("child", fd);
    _exit(0);
  }
  wait(NULL);
  return 0;
}
