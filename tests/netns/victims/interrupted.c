// A connect() that a signal of the program's own ends (or does not).
//
//   interrupted HOW AFTER_MS NAME PORT
//
// HOW: die      no handler: SIGALRM ends the process
//      eintr    a handler without SA_RESTART
//      restart  a handler with SA_RESTART: connect() goes on
//      linger   a handler without SA_RESTART that takes LINGER_MS
//      jump     a handler that leaves connect() by siglongjmp, as wget's does
//
// Connects to the first address of the name only.

#include "victim.h"

#include <setjmp.h>
#include <signal.h>

static sigjmp_buf out_of_connect;
static volatile sig_atomic_t alarms;

static void count(int signal_number) {
  (void)signal_number;
  alarms = alarms + 1;
}

#define LINGER_MS 1500

static void linger(int signal_number) {
  count(signal_number);
  poll(NULL, 0, LINGER_MS);
}

static void jump(int signal_number) {
  (void)signal_number;
  siglongjmp(out_of_connect, 1);
}

static void arrange_alarm(const char* how, long after_ms) {
  struct sigaction action = {.sa_handler = SIG_DFL};
  if (!strcmp(how, "eintr") || !strcmp(how, "restart")) action.sa_handler = count;
  if (!strcmp(how, "restart")) action.sa_flags = SA_RESTART;
  if (!strcmp(how, "linger")) action.sa_handler = linger;
  if (!strcmp(how, "jump")) action.sa_handler = jump;
  sigaction(SIGALRM, &action, NULL);
  struct itimerval timer = {.it_value = {after_ms / 1000, after_ms % 1000 * 1000}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  struct addrinfo* list = look_up(argv[3], argv[4]);
  int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
  uint64_t before = cookie(fd);
  if (sigsetjmp(out_of_connect, 1)) {
    puts("connect left by siglongjmp");
  } else {
    arrange_alarm(argv[1], atol(argv[2]));
    int failed = connect(fd, list->ai_addr, list->ai_addrlen);
    printf("connect %s\n", failed ? strerrorname_np(errno) : "connected");
  }
  printf("alarms %d\n", (int)alarms);
  printf("socket %s\n", cookie(fd) == before ? "kept" : "replaced");
  return 0;
}
