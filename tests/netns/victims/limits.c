// Programs that are short of something.
//
//   limits WHAT AMOUNT NAME PORT
//
// WHAT: nofile   RLIMIT_NOFILE is AMOUNT
//       filled   RLIMIT_NOFILE is 256, and all numbers but AMOUNT are taken
//       nproc    as another user, who may have no second thread
//       as       RLIMIT_AS leaves AMOUNT KiB
//       stack    RLIMIT_STACK is AMOUNT KiB (and so the default size of a thread's)
//
// Walks the addresses of the name. Reports the outcome, and how many fds the program can still have.

#include "hardening.h"

#include <sys/resource.h>

static void limit(int resource, rlim_t value) {
  struct rlimit both = {value, value};
  if (setrlimit(resource, &both)) perror("setrlimit");
}

static rlim_t address_space(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (fscanf(file, "%ld", &pages) != 1) perror("statm");
  fclose(file);
  return (rlim_t)pages * 4096;
}

static int numbers_left(void) {
  int count = 0;
  for (int fd; (fd = dup(0)) >= 0; ++count) (void)fd;
  return count;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const char* what = argv[1];
  long amount = atol(argv[2]);
  if (!strcmp(what, "nofile")) limit(RLIMIT_NOFILE, (rlim_t)amount);
  if (!strcmp(what, "stack")) limit(RLIMIT_STACK, (rlim_t)amount * 1024);
  if (!strcmp(what, "as")) limit(RLIMIT_AS, address_space() + (rlim_t)amount * 1024);
  if (!strcmp(what, "nproc")) {
    limit(RLIMIT_NPROC, 1);
    if (setgid(65534) || setuid(65534)) perror("setuid");
  }
  if (!strcmp(what, "filled")) {
    limit(RLIMIT_NOFILE, 256);
    while (dup(0) >= 0) continue;
    for (long i = 0; i < amount; ++i) close(255 - (int)i);
  }
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
  int code = getaddrinfo(argv[3], argv[4], &hints, &list);
  printf("getaddrinfo %s\n", code ? gai_strerror(code) : "ok");
  errno = 0;  // it stays so where the list is empty
  int fd = connect_in_turn(list), error = errno;
  printf("connect %s\n", fd < 0 ? strerrorname_np(error) : "connected");
  if (fd >= 0) printf("echo %d\n", echo_works(fd));
  printf("numbers_left %d\n",
         !strcmp(what, "nofile") || !strcmp(what, "filled") ? numbers_left() : 0);
  return 0;
}
