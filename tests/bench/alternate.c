// alternate ROUNDS PRELOAD... -- PROGRAM ARGS: runs the program once per round and PRELOAD ("" means none), in turn.
//
// Prints a line per run: which PRELOAD (0, 1, ...), wall microseconds from before posix_spawn() until the end was seen,
// and the processor microseconds of the child. The order turns from round to round, so that drift hits all alike.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { MAX_PRELOADS = 8, MAX_VARIABLES = 256 };

static double us(struct timeval t) { return t.tv_sec * 1e6 + t.tv_usec; }

int main(int count, char** words) {
  char* variables[MAX_PRELOADS][MAX_VARIABLES];
  posix_spawn_file_actions_t actions;
  int preloads = 0;
  const int rounds = count > 1 ? atoi(words[1]) : 0;
  char** program = words + 2;

  for (; *program != NULL && strcmp(*program, "--") != 0 && preloads < MAX_PRELOADS;
       ++program, ++preloads) {
    int variable = 0;
    for (char** v = environ; *v != NULL && variable < MAX_VARIABLES - 2; ++v)
      variables[preloads][variable++] = *v;
    if (**program != 0 && asprintf(&variables[preloads][variable++], "LD_PRELOAD=%s", *program) < 0)
      return 2;
    variables[preloads][variable] = NULL;
  }
  if (rounds <= 0 || preloads == 0 || *program == NULL || *++program == NULL) return 2;

  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  for (int round = 0; round < rounds; ++round) {
    for (int turn = 0; turn < preloads; ++turn) {
      const int which = (round + turn) % preloads;
      pid_t child;
      int status;
      struct rusage usage;
      const double start = now_us();
      if (posix_spawn(&child, program[0], &actions, NULL, program, variables[which]) != 0) return 1;
      if (wait4(child, &status, 0, &usage) != child) return 1;
      const double end = now_us();
      if (status != 0) return 1;
      printf("%d %.1f %.1f\n", which, end - start, us(usage.ru_utime) + us(usage.ru_stime));
    }
  }
  return 0;
}
