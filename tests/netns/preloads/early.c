// A preloaded library that uses the network before anybody else is ready: in its constructor. The loader runs
// constructors in the reverse order of LD_PRELOAD. What it saw is printed when the program ends.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char seen[512];

static void note(const char* call, const char* result) {
  size_t used = strlen(seen);
  snprintf(seen + used, sizeof seen - used, "early %s %s\n", call, result);
}

__attribute__((constructor)) static void early(void) {
  struct sockaddr_in nobody = {
      .sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  errno = 0;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  note("connect",
       connect(fd, (struct sockaddr*)&nobody, sizeof nobody) ? strerrorname_np(errno) : "ok");
  note("connect -1",
       connect(-1, (struct sockaddr*)&nobody, sizeof nobody) ? strerrorname_np(errno) : "ok");
  close(fd);
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
  int code = getaddrinfo("localhost", "7", &hints, &list);
  note("getaddrinfo localhost", code ? gai_strerror(code) : "ok");
  if (!code) freeaddrinfo(list);
  code = getaddrinfo(NAME, "7", &hints, &list);
  note("getaddrinfo NAME", code ? gai_strerror(code) : "ok");
  if (!code) {
    fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
    note("connect NAME",
         connect(fd, list->ai_addr, list->ai_addrlen) ? strerrorname_np(errno) : "ok");
    close(fd);
    freeaddrinfo(list);
  }
}

__attribute__((destructor)) static void late(void) {
  fputs(seen, stdout);
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
  int code = getaddrinfo(NAME, "7", &hints, &list);
  printf("late getaddrinfo %s\n", code ? gai_strerror(code) : "ok");
  if (!code) freeaddrinfo(list);
  fflush(stdout);
}
