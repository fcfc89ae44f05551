// Closes a connecting socket, or puts another file behind its number, and watches the number.
//
//   drops HOW MS THREADS NAME PORT
//
// HOW: close dup2 dup3 close_range closefrom fclose syscall-close syscall-dup2 syscall-dup3 syscall-close_range;
// MS: so long after connect(). The number is then an end of a socketpair, on which nothing may arrive.

#include "hardening.h"

#include <sys/syscall.h>

#define WATCH_MS 1500

static int fd;

static void wait_ms(int ms) {
  for (double end = now_ms() + ms, left; (left = end - now_ms()) > 0;) poll(NULL, 0, (int)left + 1);
}

static void drop(const char* how, int own) {
  if (!strcmp(how, "close")) close(fd);
  if (!strcmp(how, "dup2")) dup2(own, fd);
  if (!strcmp(how, "dup3")) dup3(own, fd, O_CLOEXEC);
  if (!strcmp(how, "close_range")) close_range((unsigned)fd, (unsigned)fd, 0);
  if (!strcmp(how, "fclose")) fclose(fdopen(fd, "w"));
  if (!strcmp(how, "syscall-close")) syscall(SYS_close, fd);
  if (!strcmp(how, "syscall-dup2")) syscall(SYS_dup2, own, fd);
  if (!strcmp(how, "syscall-dup3")) syscall(SYS_dup3, own, fd, O_CLOEXEC);
  if (!strcmp(how, "syscall-close_range")) syscall(SYS_close_range, fd, fd, 0);
  if (!strcmp(how, "closefrom")) closefrom(fd);
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  if (atoi(argv[3]) > 1) start_idle_thread();
  int pair[2], bytes = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair)) return 2;
  struct footprint before = footprint();
  const struct addrinfo* info = look_up(argv[4], argv[5]);
  fd = socket(info->ai_family, info->ai_socktype | SOCK_NONBLOCK, info->ai_protocol);
  if (!connect(fd, info->ai_addr, info->ai_addrlen) || errno != EINPROGRESS) return 2;
  wait_ms(atoi(argv[2]));
  drop(argv[1], pair[0]);
  printf("at_dropped %.1f\n", now_ms());
  dup2(pair[0], fd);
  wait_ms(WATCH_MS);
  char byte;
  while (recv(fd, &byte, 1, MSG_DONTWAIT) > 0) ++bytes;
  int works = write(fd, "z", 1) == 1 && read(pair[1], &byte, 1) == 1 && byte == 'z';
  printf("bytes_from_nowhere %d\nown_file %s\n", bytes, works ? "works" : "lost");
  close(fd);
  print_leftovers(before);
  return 0;
}
