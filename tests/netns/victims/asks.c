// Asks a connecting socket everything that a program can ask of it, while it is pending and after.
//
//   asks HOW NAME PORT
//
// HOW: all       at 100 ms, at 400 ms (by then others are being tried), then once it is settled
//      repeated  only connect(), again and again, as some programs learn the outcome
//      error     waits, then reads SO_ERROR three times, and connects again
//      healthy   connects, then says how many threads there are

#include "hardening.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

static int fd;
static const struct addrinfo* info;

static void wait_ms(int ms) {
  for (double end = now_ms() + ms, left; (left = end - now_ms()) > 0;) poll(NULL, 0, (int)left + 1);
}

static const char* again(void) {
  return connect(fd, info->ai_addr, info->ai_addrlen) ? strerrorname_np(errno) : "0";
}

static const char* name_of(int (*function)(int, struct sockaddr*, socklen_t*)) {
  static char text[80];
  struct sockaddr_storage name = {0};
  socklen_t length = sizeof name;
  if (function(fd, (struct sockaddr*)&name, &length)) return strerrorname_np(errno);
  int port = ntohs(((struct sockaddr_in*)&name)->sin_port);  // at the same place in both families
  snprintf(text, sizeof text, "length %u port %s", length,
           port == 0     ? "0"
           : port < 1024 ? "a server's"
                         : "a client's");
  return text;
}

static void ask(const char* when) {
  int readable = -1, unsent = -1;
  char byte = 'x';
  printf("%s connect %s\n", when, again());
  printf("%s getpeername %s\n", when, name_of(getpeername));
  printf("%s getsockname %s\n", when, name_of(getsockname));
  printf("%s type %d domain %d protocol %d accepting %d state %d\n", when,
         option(fd, SOL_SOCKET, SO_TYPE), option(fd, SOL_SOCKET, SO_DOMAIN),
         option(fd, SOL_SOCKET, SO_PROTOCOL), option(fd, SOL_SOCKET, SO_ACCEPTCONN),
         view(fd).state);
  printf("%s flags %x %x so_error %d\n", when, (unsigned)fcntl(fd, F_GETFL),
         (unsigned)fcntl(fd, F_GETFD), option(fd, SOL_SOCKET, SO_ERROR));
  printf("%s FIONREAD %d", when, ioctl(fd, FIONREAD, &readable));
  printf(" %d SIOCOUTQ %d", readable, ioctl(fd, SIOCOUTQ, &unsent));
  printf(" %d\n", unsent);
  struct pollfd p = {fd, POLLIN | POLLOUT, 0};
  printf("%s poll %d", when, poll(&p, 1, 0));
  printf(" %x\n", (unsigned)p.revents);
  printf("%s send %s\n", when, send(fd, &byte, 1, MSG_NOSIGNAL) < 0 ? strerrorname_np(errno) : "1");
  printf("%s recv %s\n", when, recv(fd, &byte, 1, 0) < 0 ? strerrorname_np(errno) : "some");
}

static void ask_all(void) {
  wait_ms(100);
  ask("at-100");
  wait_ms(300);
  ask("at-400");
}

static void ask_repeatedly(void) {
  const char* before = "";
  for (double end = now_ms() + 6000; now_ms() < end; wait_ms(5)) {
    const char* said = again();
    if (!strcmp(said, before)) continue;
    printf("then %s\n", said);
    if (!strcmp(said, "EISCONN") || (!strcmp(said, "EINPROGRESS") && *before)) break;
    before = said;
  }
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  struct footprint before = footprint();
  info = look_up(argv[2], argv[3]);
  fd = socket(info->ai_family, info->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, info->ai_protocol);
  printf("first %s\n", again());
  if (!strcmp(argv[1], "all")) ask_all();
  if (!strcmp(argv[1], "repeated")) ask_repeatedly();
  struct pollfd p = {fd, POLLOUT, 0};
  if (!strcmp(argv[1], "error")) {
    poll(&p, 1, 6000);
    for (int i = 0; i < 3; ++i) {
      int error = option(fd, SOL_SOCKET, SO_ERROR);
      printf("so_error %s\n", error ? strerrorname_np(error) : "0");
    }
    printf("connect %s\n", again());
  } else if (strcmp(argv[1], "repeated")) {
    printf("outcome %d", poll(&p, 1, 6000));
    printf(" %x\n", (unsigned)p.revents);
    printf("connect %s", again());
    printf(" %s\n", again());
    printf("peer %s\n", name_of(getpeername));
    printf("flags %x %x\n", (unsigned)fcntl(fd, F_GETFL), (unsigned)fcntl(fd, F_GETFD));
  }
  if (!strcmp(argv[1], "healthy")) printf("threads %d\n", threads());
  close(fd);
  print_leftovers(before);
  return 0;
}
