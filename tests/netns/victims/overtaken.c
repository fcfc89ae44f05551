// Uses its socket the moment it has connected: says something by it and waits for the echo.
//
//   overtaken poll|select|write none|threads NAME PORT

#include "victim.h"

#include <pthread.h>
#include <sys/select.h>

static const char token[] = "token";

static void* idle(void* unused) {
  pause();
  return unused;
}

// Returns when the token has been written: at once when the socket is ready, or as soon as it can be written.
static int say(int fd, const char* style) {
  if (!strcmp(style, "poll")) {
    struct pollfd p = {fd, POLLOUT, 0};
    poll(&p, 1, 5000);
  } else if (!strcmp(style, "select")) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    struct timeval limit = {5, 0};
    select(fd + 1, NULL, &set, NULL, &limit);
  }
  for (int tries = 0; tries < 5000; ++tries) {
    if (send(fd, token, sizeof token, MSG_NOSIGNAL) == sizeof token) return 1;
    if (errno != EAGAIN) return 0;
    usleep(1000);
  }
  return 0;
}

static int hear(int fd) {
  char back[sizeof token];
  struct pollfd p = {fd, POLLIN, 0};
  return poll(&p, 1, 4000) == 1 && recv(fd, back, sizeof back, MSG_WAITALL) == sizeof back &&
         !memcmp(back, token, sizeof back);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  pthread_t thread;
  if (!strcmp(argv[2], "threads") && pthread_create(&thread, NULL, idle, NULL)) return 2;
  const struct addrinfo* to = look_up(argv[3], argv[4]);
  int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (connect(fd, to->ai_addr, to->ai_addrlen) && errno != EINPROGRESS) return 2;
  printf("said %d\n", say(fd, argv[1]));
  printf("heard %d\n", hear(fd));
  printf("peer %s\n", peer_text(fd));
  return 0;
}
