// Calls of connect() that end, or whose program ends, in unusual ways.
//
//   ends WHAT AFTER_MS NAME PORT
//
// WHAT: jump-exit     SIGALRM leaves connect() by siglongjmp; the stack is overwritten; the main thread ends by
//                     pthread_exit(), and with it the process
//       jump-exit-threads  the same in a program that had a thread
//       main-exit     a program that had a thread connects; then its main thread ends by pthread_exit()
//       slow-handler  a handler with SA_RESTART runs for two seconds in the middle of the race
//       shutdown      another thread calls shutdown() on the socket
//       jump-lookup   SIGALRM leaves getaddrinfo() by siglongjmp, twenty times

#include "hardening.h"

#include <setjmp.h>

static const char *what, *name, *port;
static long after_ms;
static struct addrinfo* list;
static sigjmp_buf out;
static volatile int fd = -1;

static int is(const char* other) { return !strcmp(what, other); }

// -- what happens in mid-connect --

static void jump(int number) {
  (void)number;
  siglongjmp(out, 1);
}

static void sleep_in_handler(int number) {
  (void)number;
  sleep_ms(2000);
}

static void* shut_down(void* unused) {
  sleep_ms((double)after_ms);
  shutdown(fd, SHUT_RDWR);
  return unused;
}

static void* nothing(void* unused) { return unused; }

static void have_had_a_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, nothing, NULL);
  pthread_join(thread, NULL);
}

__attribute__((noinline)) static void overwrite_stack(void) {
  volatile char block[65536];
  memset((void*)block, 0x41, sizeof block);
}

// -- the program --

static int open_and_connect(void) {
  fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
  return connect(fd, list->ai_addr, list->ai_addrlen);
}

static void leave_by_jump(void) {
  handle(SIGALRM, jump, 0);
  signal_after(SIGALRM, after_ms);
  if (sigsetjmp(out, 1)) {
    puts("left yes");
  } else {
    printf("connect %s\n", outcome(open_and_connect()));
  }
  overwrite_stack();
  pthread_exit(NULL);
}

static void leave_lookups_by_jump(void) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *answer;
  struct footprint before = footprint();
  handle(SIGALRM, jump, 0);
  for (volatile int i = 0; i < 20; ++i) {
    if (sigsetjmp(out, 1)) continue;
    signal_after(SIGALRM, after_ms);
    getaddrinfo(name, port, &hints, &answer);
    puts("returned yes");
  }
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  printf("cancel_state %d\nat_fds_more %d\n", state, open_fds() - before.fds);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  what = argv[1], after_ms = atol(argv[2]), name = argv[3], port = argv[4];
  if (is("jump-lookup")) return leave_lookups_by_jump(), 0;
  if (is("jump-exit-threads") || is("main-exit")) have_had_a_thread();
  list = look_up(name, port);
  if (is("jump-exit") || is("jump-exit-threads")) leave_by_jump();
  if (is("slow-handler")) {
    handle(SIGALRM, sleep_in_handler, SA_RESTART);
    signal_after(SIGALRM, after_ms);
  }
  pthread_t thread;
  if (is("shutdown")) pthread_create(&thread, NULL, shut_down, NULL);
  double began = now_ms();
  int failed = open_and_connect();
  printf("%s %s\nconnect_ms %.1f\n", is("shutdown") ? "connect" : "at_connect", outcome(failed),
         now_ms() - began);
  if (is("main-exit")) {
    fflush(stdout);
    printf("at_end %.1f\n", now_ms());
    pthread_exit(NULL);
  }
  return 0;
}
