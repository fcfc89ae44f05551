// A program with a malloc() of its own (which no sanitizer survives).
//
//   mallocs WHAT AFTER_MS NAME PORT
//
// WHAT: datagram-handler  connects a datagram socket in a signal handler, ten times, and counts the calls of malloc()
//                     and free() there
//       busy-handler  connects in a signal handler that interrupts malloc() and free(), thirty times
//       no-memory     malloc() fails in every thread but the program's
//       no-memory-once  only the first such call fails

#include "hardening.h"

static const char* what;
static long after_ms;
static struct addrinfo* list;

static int is(const char* other) { return !strcmp(what, other); }

extern void* __libc_malloc(size_t size);
extern void __libc_free(void* block);
static volatile int in_handler, handled, mallocs, frees, failing;
static pid_t main_thread;

void* malloc(size_t size) {
  if (in_handler) ++mallocs;
  if (failing && gettid() != main_thread) {
    if (is("no-memory-once")) failing = 0;
    errno = ENOMEM;
    return NULL;
  }
  return __libc_malloc(size);
}

void free(void* block) {
  if (in_handler && block) ++frees;
  __libc_free(block);
}

static void connect_in_handler(int number) {
  (void)number;
  in_handler = 1;
  int own = socket(list->ai_family, is("busy-handler") ? SOCK_STREAM : SOCK_DGRAM, 0);
  connect(own, list->ai_addr, list->ai_addrlen);
  close(own);
  in_handler = 0;
  ++handled;
}

static void connect_ten_times_in_a_handler(void) {
  handle(SIGUSR1, connect_in_handler, 0);
  for (int i = 0; i < 10; ++i) {
    raise(SIGUSR1);
    sleep_ms((double)after_ms);
  }
  printf("mallocs %d\nfrees %d\n", mallocs, frees);
}

static void connect_while_allocating(void) {
  struct itimerval every = {{0, after_ms * 1000}, {0, after_ms * 1000}};
  handle(SIGALRM, connect_in_handler, SA_RESTART);
  setitimer(ITIMER_REAL, &every, NULL);
  while (handled < 30) {
    void* blocks[64];
    for (size_t i = 0; i < 64; ++i) blocks[i] = malloc(1 + i * 977 % 9000);
    for (size_t i = 0; i < 64; ++i) free(blocks[i]);
  }
  printf("handled yes\n");
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  what = argv[1], after_ms = atol(argv[2]);
  main_thread = gettid();
  list = look_up(argv[3], argv[4]);
  if (is("datagram-handler")) return connect_ten_times_in_a_handler(), 0;
  if (is("busy-handler")) return connect_while_allocating(), 0;
  failing = 1;
  int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
  double began = now_ms();
  printf("at_connect %s\n", outcome(connect(fd, list->ai_addr, list->ai_addrlen)));
  printf("connect_ms %.1f\n", now_ms() - began);
  return 0;
}
