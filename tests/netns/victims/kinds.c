// Connects a socket of a special kind.
//
//   kinds KIND block|nonblock NAME PORT
//
// KIND: plain     nothing special
//       sendto, sendmsg   no connect(): MSG_FASTOPEN
//       defer     TCP_FASTOPEN_CONNECT
//       mptcp     IPPROTO_MPTCP
//       v6only    IPV6_V6ONLY
//       any       bound to the wildcard address, without a port
//       address   bound to the client's own address of the first one's family
//       port      bound to a port of its own choice
// Waits 1.5 s for the outcome of the first address, and says what the socket is then.

#include "hardening.h"

#include <netinet/in.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#define PATIENCE_MS 1500

static const char* kind;
static const struct addrinfo* info;
static int fd;

static int is(const char* what) { return !strcmp(kind, what); }
static const char* result(long failed) { return failed < 0 ? strerrorname_np(errno) : "ok"; }

static void bind_to(const char* address, int port) {
  char number[8];
  snprintf(number, sizeof number, "%d", port);
  struct addrinfo hints = {.ai_family = info->ai_family,
                           .ai_socktype = SOCK_STREAM,
                           .ai_flags = AI_NUMERICHOST},
                  *own;
  if (getaddrinfo(address, number, &hints, &own) || bind(fd, own->ai_addr, own->ai_addrlen))
    perror("bind");
}

static void prepare(void) {
  int six = info->ai_family == AF_INET6;
  if (is("defer")) set_option(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1);
  if (is("v6only") && six) set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (is("any")) bind_to(six ? "::" : "0.0.0.0", 0);
  if (is("port")) bind_to(six ? "::" : "0.0.0.0", 20000 + getpid() % 10000);
  if (is("address")) bind_to(six ? "2001:db8:1::2" : "192.0.2.2", 0);
}

static long begin(void) {
  struct iovec data = {"x", 1};
  struct msghdr message = {.msg_name = info->ai_addr,
                           .msg_namelen = info->ai_addrlen,
                           .msg_iov = &data,
                           .msg_iovlen = 1};
  if (is("sendto")) return sendto(fd, "x", 1, MSG_FASTOPEN, info->ai_addr, info->ai_addrlen);
  if (is("sendmsg")) return sendmsg(fd, &message, MSG_FASTOPEN);
  return connect(fd, info->ai_addr, info->ai_addrlen);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  kind = argv[1];
  int blocking = !strcmp(argv[2], "block");
  info = look_up(argv[3], argv[4]);
  fd = socket(info->ai_family, SOCK_STREAM | (blocking ? 0 : SOCK_NONBLOCK),
              is("mptcp") ? IPPROTO_MPTCP : 0);
  if (fd < 0) return 2;
  struct timeval limit = {PATIENCE_MS / 1000, PATIENCE_MS % 1000 * 1000};
  if (blocking) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  prepare();
  uint64_t before = cookie(fd);
  printf("begin %s\n", result(begin()));
  struct pollfd p = {fd, POLLOUT, 0};
  printf("events %d", poll(&p, 1, blocking ? 0 : PATIENCE_MS));
  printf(" %x\n", (unsigned)p.revents);
  printf("so_error %d protocol %d\n", option(fd, SOL_SOCKET, SO_ERROR),
         option(fd, SOL_SOCKET, SO_PROTOCOL));
  printf("peer %s\n", peer_text(fd));
  printf("socket %s\n", cookie(fd) == before ? "kept" : "replaced");
  return 0;
}
