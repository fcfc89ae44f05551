// What the victims share: small legacy-style programs that show on stdout, one "key value" a line, what a connect()
// did to them. They know nothing of libhappy.

#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

static inline struct addrinfo* look_up(const char* name, const char* port) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
  int error = getaddrinfo(name, port, &hints, &list);
  if (!error) return list;
  printf("getaddrinfo %s\n", gai_strerror(error));
  exit(3);
}

static inline const char* address_text(const struct sockaddr* address) {
  static char text[NI_MAXHOST];
  socklen_t length =
      address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
  getnameinfo(address, length, text, sizeof text, NULL, 0, NI_NUMERICHOST);
  return text;
}

static inline const char* peer_text(int fd) {
  struct sockaddr_storage peer;
  socklen_t length = sizeof peer;
  if (getpeername(fd, (struct sockaddr*)&peer, &length)) return strerrorname_np(errno);
  return address_text((struct sockaddr*)&peer);
}

static inline uint64_t cookie(int fd) {
  uint64_t value = 0;
  socklen_t length = sizeof value;
  if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &value, &length)) perror("SO_COOKIE");
  return value;
}

static inline int option(int fd, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  return getsockopt(fd, level, name, &value, &length) ? -errno : value;
}

static inline void set_option(int fd, int level, int name, int value) {
  if (setsockopt(fd, level, name, &value, sizeof value)) perror("setsockopt");
}

// Says something, so that the server can tell the connection from an abandoned attempt, and hears the echo.
static inline int echo_works(int fd) {
  char byte = 'x';
  return write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1 && byte == 'x';
}

static inline int entries(const char* folder_path) {
  DIR* folder = opendir(folder_path);
  int count = -2;  // "." and ".."
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

#define FDS_OF_LIBHAPPY 1  // the trace's, in a traced run
#define SETTLE_MS 7000     // late answers may be waited for 5 s, a worker may linger 1 s

static inline int open_fds(void) {
  return entries("/proc/self/fd") - 1;
}  // without the folder's own

// How many more fds there are than `before`, once what is only waiting for something has gone.
static inline int fds_more_than(int before) {
  for (int waited = 0; waited < SETTLE_MS && open_fds() - before > FDS_OF_LIBHAPPY; waited += 20)
    poll(NULL, 0, 20);
  return open_fds() - before;
}
