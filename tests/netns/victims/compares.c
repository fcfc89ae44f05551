// Does what daemons do who trust their peers by name: looks an address's name up, and whether the name has it.
//
//   compares [-l | -u | -r | -a | -t] ADDRESS...
//
// With -l it listens first, as a daemon does, with -u on an AF_UNIX socket, as browsers do, with -r on both, one after
// the other by the same number; with -a it accepts from a socket that listens already, as one that inetd or systemd has
// started; with -t it writes a title over its own name, as daemons do, too. One line for each address: "ADDRESS NAME matches", "... does not match".

#include "victim.h"

#include <sys/syscall.h>
#include <sys/un.h>

static int has_address(const char* name, const char* wanted) {
  struct addrinfo* list;
  if (getaddrinfo(name, NULL, NULL, &list)) return 0;
  int found = 0;
  for (const struct addrinfo* info = list; info; info = info->ai_next)
    found |= !strcmp(address_text(info->ai_addr), wanted);
  freeaddrinfo(list);
  return found;
}

static void compare(const char* address) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *info;
  char name[NI_MAXHOST];
  if (getaddrinfo(address, NULL, &hints, &info)) exit(2);
  int error = getnameinfo(info->ai_addr, info->ai_addrlen, name, sizeof name, NULL, 0, NI_NAMEREQD);
  freeaddrinfo(info);
  if (error)
    printf("%s has no name\n", address);
  else
    printf("%s %s %s\n", address, name, has_address(name, address) ? "matches" : "does not match");
}

// syscall() stands for the process before this one.
static void accept_unheard(void) {
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof own;
  int fd = socket(AF_INET, SOCK_STREAM, 0), peer = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(fd, (struct sockaddr*)&own, length) || syscall(SYS_listen, fd, 1) ||
      getsockname(fd, (struct sockaddr*)&own, &length) ||
      connect(peer, (struct sockaddr*)&own, length) || accept(fd, NULL, NULL) < 0)
    perror("accept");
}

static void listen_anew(void) {
  struct sockaddr_un own = {.sun_family = AF_UNIX};
  socklen_t length = sizeof own;
  int fd = socket(AF_UNIX, SOCK_STREAM, 0), peer = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(fd, (struct sockaddr*)&own, sizeof own.sun_family) || listen(fd, 1) ||
      getsockname(fd, (struct sockaddr*)&own, &length) ||
      connect(peer, (struct sockaddr*)&own, length) || accept(fd, NULL, NULL) < 0 ||
      dup2(socket(AF_INET, SOCK_STREAM, 0), fd) != fd || listen(fd, 1))
    perror("listen");
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* habit = argv[1];
  int first = *habit == '-' ? 2 : 1;
  if (!strcmp(habit, "-l") && listen(socket(AF_INET, SOCK_STREAM, 0), 1)) perror("listen");
  if (!strcmp(habit, "-u")) {
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(fd, (struct sockaddr*)&any, sizeof any.sun_family) || listen(fd, 1)) perror("listen");
    if (accept(fd, NULL, NULL) != -1 || errno != EAGAIN) perror("accept");
  }
  if (!strcmp(habit, "-r")) listen_anew();
  if (!strcmp(habit, "-a")) accept_unheard();
  if (!strcmp(habit, "-t")) memset(argv[0], 't', strlen(argv[0]));
  for (int i = first; i < argc; ++i) compare(argv[i]);
  return 0;
}
