// A program with a malloc() of its own (which no sanitizer survives).
//
//   mallocs WHAT AFTER_MS NAME PORT
//
// WHAT: datagram-handler  connects a datagram socket in a signal handler, ten times
//       busy-handler  connects in a signal handler that interrupts malloc() and free(), thirty times or for three
//                     seconds; nothing may be allocated or freed there
//       busy-handler-threads  the same in a process with another thread
//       busy-handler-poll, busy-handler-threads-poll  the same with a socket that does not block, and poll()
//       busy-handler-stack  the same on a small signal stack
//       busy-handler-stack-disarmed  the same on one that the kernel does not tell of, with nothing below it
//       busy-handler-blocked  connects in no handler, with all signals blocked: a thread that may be in one
//       no-memory     malloc() fails in every thread but the program's
//       no-memory-once  only the first such call fails

#include "hardening.h"

#include <sys/mman.h>

static const char* what;
static long after_ms;
static struct addrinfo* list;

static int is(const char* other) { return !strcmp(what, other); }
static int has(const char* part) { return !!strstr(what, part); }

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* block, size_t size);
extern void __libc_free(void* block);
static volatile int in_handler, handled, succeeded, mallocs, frees, failing;
static pid_t main_thread;
static double handlers_end_ms = 1e300;

static int is_interrupted(void) { return in_handler && gettid() == main_thread; }

void* calloc(size_t count, size_t size) {
  if (is_interrupted()) ++mallocs;
  return __libc_calloc(count, size);
}

void* realloc(void* block, size_t size) {
  if (is_interrupted()) ++mallocs;
  return __libc_realloc(block, size);
}

void* malloc(size_t size) {
  if (is_interrupted()) ++mallocs;
  if (failing && gettid() != main_thread) {
    if (is("no-memory-once")) failing = 0;
    errno = ENOMEM;
    return NULL;
  }
  return __libc_malloc(size);
}

void free(void* block) {
  if (block && is_interrupted()) ++frees;
  __libc_free(block);
}

static void connect_in_handler(int number) {
  (void)number;
  int interrupted_error = errno;
  in_handler = 1;
  int type = has("busy") ? SOCK_STREAM : SOCK_DGRAM;
  int own = socket(list->ai_family, type | (has("poll") ? SOCK_NONBLOCK : 0), 0);
  int failed = connect(own, list->ai_addr, list->ai_addrlen);
  struct pollfd wait = {own, POLLOUT, 0};
  if (failed && has("poll")) failed = poll(&wait, 1, 1000) != 1 || !(wait.revents & POLLOUT);
  if (!failed) ++succeeded;
  close(own);
  in_handler = 0;
  ++handled;
  if (now_ms() > handlers_end_ms) setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
  errno = interrupted_error;
}

static void connect_ten_times_in_a_handler(void) {
  handle(SIGUSR1, connect_in_handler, 0);
  for (int i = 0; i < 10; ++i) {
    raise(SIGUSR1);
    sleep_ms((double)after_ms);
  }
  printf("mallocs %d\nfrees %d\n", mallocs, frees);
}

static stack_t small_stack(void) {
  enum { SIZE = 8192, AUTODISARM = 1u << 31 };
  char* guard = mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(guard + SIZE, SIZE, PROT_READ | PROT_WRITE);
  return (stack_t){
      .ss_sp = guard + SIZE, .ss_size = SIZE, .ss_flags = has("disarmed") ? AUTODISARM : 0};
}

static void connect_while_allocating(void) {
  struct itimerval every = {{0, after_ms * 1000}, {0, after_ms * 1000}};
  stack_t stack = small_stack();
  pthread_t other;
  if (has("threads")) pthread_create(&other, NULL, sleep_for_ever, NULL);
  if (has("stack")) sigaltstack(&stack, NULL);
  handle(SIGALRM, connect_in_handler, SA_RESTART | (has("stack") ? SA_ONSTACK : 0));
  handlers_end_ms = now_ms() + 3000;
  setitimer(ITIMER_REAL, &every, NULL);
  while (handled < 30 && now_ms() < handlers_end_ms) {
    void* blocks[64];
    for (size_t i = 0; i < 64; ++i) blocks[i] = malloc(1 + i * 977 % 9000);
    for (size_t i = 0; i < 64; ++i) free(blocks[i]);
  }
  printf("mallocs %d\nfrees %d\nat_succeeded %d\n", mallocs, frees, succeeded);
}

static void connect_with_all_blocked(void) {
  sigset_t all;
  sigfillset(&all);
  handle(SIGALRM, connect_in_handler, SA_RESTART);
  sigprocmask(SIG_SETMASK, &all, NULL);
  connect_in_handler(0);
  printf("mallocs %d\nfrees %d\nat_succeeded %d\n", mallocs, frees, succeeded);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  what = argv[1], after_ms = atol(argv[2]);
  main_thread = gettid();
  list = look_up(argv[3], argv[4]);
  if (is("datagram-handler")) return connect_ten_times_in_a_handler(), 0;
  if (is("busy-handler-blocked")) return connect_with_all_blocked(), 0;
  if (has("busy-handler")) return connect_while_allocating(), 0;
  failing = 1;
  int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
  double began = now_ms();
  printf("at_connect %s\n", outcome(connect(fd, list->ai_addr, list->ai_addrlen)));
  printf("connect_ms %.1f\n", now_ms() - began);
  return 0;
}
