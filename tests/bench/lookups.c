// lookups NAME COUNT: looks up COUNT names below NAME, each for the first time, and then one of them COUNT times. Before,
// unmeasured, one more: the start of a resolver is not what is measured.
//
// Prints "cold_us N" and "repeated_us N", medians, and "cold_cpu_us N" and "repeated_cpu_us N", means.
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "bench.h"

enum { MAX_COUNT = 10000 };

static int by_size(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static double look_up(const char* name, int number) {
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  char whole[256];
  struct addrinfo* list;
  snprintf(whole, sizeof whole, "n%d.%s", number, name);
  const double start = now_us();
  if (getaddrinfo(whole, "80", &hints, &list) != 0) exit(1);
  const double took = now_us() - start;
  freeaddrinfo(list);
  return took;
}

// The names are number 1, and from there on in steps of `step`.
static void measure(const char* kind, const char* name, int count, int step) {
  static double took[MAX_COUNT];
  const double cpu = clock_us(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < count; ++i) took[i] = look_up(name, 1 + i * step);
  const double spent = clock_us(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  qsort(took, (size_t)count, sizeof *took, by_size);
  printf("%s_us %.2f\n%s_cpu_us %.2f\n", kind, took[count / 2], kind, spent / count);
}

int main(int words, char** word) {
  const int count = words == 3 ? atoi(word[2]) : 0;
  if (count < 1 || count > MAX_COUNT) return 2;
  look_up(word[1], 0);
  measure("cold", word[1], count, 1);
  measure("repeated", word[1], count, 0);
  return 0;
}
