// siglongjmp() out of res_query() at random moments: jumps_out NAME
//
// Reports how many descriptors are left.

#define _GNU_SOURCE
#include "hardening.h"

#include <arpa/nameser.h>
#include <resolv.h>
#include <setjmp.h>

enum { rounds = 600, longest_us = 400 };

static sigjmp_buf out;

static void jump(int number) {
  (void)number;
  siglongjmp(out, 1);
}

static int count_open(void) {
  int open = 0;
  for (int fd = 0; fd < 1024; ++fd) open += fcntl(fd, F_GETFD) >= 0;
  return open;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  unsigned char answer[4096];
  res_query(argv[1], ns_c_in, ns_t_a, answer, sizeof answer);
  int before = count_open();
  signal(SIGALRM, jump);
  for (volatile int i = 0; i < rounds; ++i) {
    if (sigsetjmp(out, 1)) continue;
    ualarm(1 + rand() % longest_us, 0);
    res_query(argv[1], ns_c_in, ns_t_a, answer, sizeof answer);
    ualarm(0, 0);
  }
  res_nclose(&_res);
  printf("left %d\n", count_open() - before);
  return 0;
}
