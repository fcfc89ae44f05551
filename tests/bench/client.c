// client NAME PORT COUNT THREADS [stdio | memory]: COUNT times looks NAME up and connects, in THREADS threads together.
//
// Prints "wall_us N" and "cpu_us N" for all of them; then, with "stdio", "putc_ns N" and "malloc_ns N" per call; with
// "memory", the lines of /proc/self/smaps_rollup.
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

static const char *name, *port;

static double cpu_us(void) { return clock_us(CLOCK_PROCESS_CPUTIME_ID); }

static void* visit(void* count) {
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  const struct linger at_once = {1, 0};  // no TIME_WAIT, which would use the ports up
  for (long left = (long)count; left > 0; --left) {
    struct addrinfo* list;
    if (getaddrinfo(name, port, &hints, &list) != 0) give_up("getaddrinfo");
    const int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
    if (fd < 0 || connect(fd, list->ai_addr, list->ai_addrlen) != 0) give_up("connect");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
    freeaddrinfo(list);
  }
  return NULL;
}

// The best of some rounds: whatever else runs on the machine only ever makes it slower.
static void measure_stdio(void) {
  enum { ROUNDS = 60, CALLS = 100000 };
  double putc_us = 1e9, malloc_us = 1e9;
  FILE* out = fopen("/dev/null", "w");
  static void* volatile kept;
  if (out == NULL) give_up("/dev/null");
  for (int round = 0; round < ROUNDS; ++round) {
    double start = now_us();
    for (int i = 0; i < CALLS; ++i) putc('x', out);
    const double put = now_us() - start;
    start = now_us();
    for (int i = 0; i < CALLS; ++i) {
      kept = malloc(64);
      free(kept);
    }
    const double allocated = now_us() - start;
    if (put < putc_us) putc_us = put;
    if (allocated < malloc_us) malloc_us = allocated;
  }
  printf("putc_ns %.3f\nmalloc_ns %.3f\n", putc_us * 1e3 / CALLS, malloc_us * 1e3 / CALLS);
}

static void print_memory(void) {
  char line[256];
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) fputs(line, stdout);
}

int main(int words, char** word) {
  enum { MAX_THREADS = 64 };
  pthread_t threads[MAX_THREADS];
  if (words < 5) return 2;
  name = word[1];
  port = word[2];
  const long count = atol(word[3]), thread_count = atol(word[4]);
  if (thread_count < 1 || thread_count > MAX_THREADS) return 2;

  const double wall = now_us(), cpu = cpu_us();
  if (thread_count == 1) {
    visit((void*)count);
  } else {
    for (long i = 0; i < thread_count; ++i)
      pthread_create(&threads[i], NULL, visit, (void*)(count / thread_count));
    for (long i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
  }
  printf("wall_us %.1f\ncpu_us %.1f\n", now_us() - wall, cpu_us() - cpu);
  if (words > 5 && strcmp(word[5], "stdio") == 0) measure_stdio();
  if (words > 5 && strcmp(word[5], "memory") == 0) print_memory();
  return 0;
}
