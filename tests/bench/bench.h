// What the programs that measure have in common.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double clock_us(clockid_t which) {
  struct timespec now;
  clock_gettime(which, &now);
  return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static inline double now_us(void) { return clock_us(CLOCK_MONOTONIC); }

static inline void give_up(const char* what) {
  perror(what);
  exit(1);
}
