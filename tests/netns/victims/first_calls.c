// Children whose first calls of their kind come while a lock of the loader's is held for ever, because a thread of the
// parent was in dl_iterate_phdr() when it forked: first_calls

#define _GNU_SOURCE
#include "hardening.h"

#include <link.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int look(struct dl_phdr_info* library, size_t size, void* unused) {
  (void)library, (void)size, (void)unused;
  return 0;
}

static void* look_for_ever(void* unused) {
  for (;;) dl_iterate_phdr(look, unused);
  return NULL;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, look_for_ever, NULL)) return 2;
  int hung = 0;
  for (int i = 0; i < 200 && !hung; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(5);
      close(77);
      prctl(PR_SET_NAME, "child");
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    hung = WIFSIGNALED(status);
  }
  printf("hung %d\n", hung);
  return 0;
}
