// Processes that end in the middle of a connect(), over and over.
//
//   exits HOW WHO COUNT AT_ONCE SEED NAME PORT
//
// Looks NAME up, then forks COUNT children, AT_ONCE at a time, each of which connects to its first address and ends at a
// random moment of the first 500 ms.
// HOW: exit quick_exit _exit return pthread_exit (of the main thread)
// WHO: thread   a thread connects (and gives up after 500 ms); the main thread ends the process
//      handler  the main thread connects; a signal handler ends the process (no return, no pthread_exit)
//      poll     the main thread connects without blocking, waits in poll(), and ends the process
//
// Reports how children ended, how often exit handlers ran, and how many ended a second too late.

#include "hardening.h"

#include <poll.h>
#include <sys/mman.h>

#define LONGEST_MS 500
#define MAX_AT_ONCE 256
#define LATE_MS 1000

struct marks {
  int exit_handlers, quick_exit_handlers, destructors;
};

static struct marks* marks;
static const char* how;
static pid_t first;
static struct addrinfo* list;

static void at_exit(void) {
  __atomic_fetch_add(&marks->exit_handlers, getpid() != first, __ATOMIC_RELAXED);
}
static void at_quick(void) { __atomic_fetch_add(&marks->quick_exit_handlers, 1, __ATOMIC_RELAXED); }
__attribute__((destructor)) static void destroyed(void) {
  if (marks) __atomic_fetch_add(&marks->destructors, getpid() != first, __ATOMIC_RELAXED);
}

static int is(const char* what) { return !strcmp(how, what); }

static void end(void) {
  if (is("exit")) exit(7);
  if (is("quick_exit")) quick_exit(7);
  if (is("_exit")) _exit(7);
  if (is("pthread_exit")) pthread_exit(NULL);
}

static void end_in_handler(int number) {
  (void)number;
  end();
}

static void* connect_in_thread(void* unused) {
  int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
  struct timeval limit = {0, LONGEST_MS * 1000};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  connect(fd, list->ai_addr, list->ai_addrlen);
  return unused;
}

static void connect_and_poll(long after_ms) {
  int fd = socket(list->ai_family, list->ai_socktype | SOCK_NONBLOCK, list->ai_protocol);
  connect(fd, list->ai_addr, list->ai_addrlen);
  struct pollfd waiting = {fd, POLLOUT, 0};
  poll(&waiting, 1, (int)after_ms);
}

static int child(const char* who, long after_ms) {
  if (!strcmp(who, "handler")) {
    handle(SIGALRM, end_in_handler, 0);
    signal_after(SIGALRM, after_ms + 1);
    for (;;) connect_first(list);
  }
  pthread_t thread;
  if (!strcmp(who, "poll")) {
    connect_and_poll(after_ms);
  } else {
    pthread_create(&thread, NULL, connect_in_thread, NULL);
    sleep_ms((double)after_ms);
  }
  end();
  return 7;
}

struct running {
  pid_t pid;
  double due_ms;
};

static struct running running[MAX_AT_ONCE];
static int statuses[256], killed, late, latest;

// Waits for one child and frees its place.
static void reap(void) {
  int status, place = 0;
  pid_t pid = wait(&status);
  while (running[place].pid != pid) ++place;
  running[place].pid = 0;
  double overdue = now_ms() - running[place].due_ms;
  if (overdue > LATE_MS) ++late;
  if (overdue > latest) latest = (int)overdue;
  if (WIFEXITED(status)) ++statuses[WEXITSTATUS(status)];
  if (WIFSIGNALED(status)) ++killed;
}

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  how = argv[1];
  const char* who = argv[2];
  int count = atoi(argv[3]), at_once = atoi(argv[4]), alive = 0;
  uint64_t seed = strtoull(argv[5], NULL, 10);
  first = getpid();
  marks = mmap(NULL, sizeof *marks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  list = look_up(argv[6], argv[7]);
  atexit(at_exit);
  at_quick_exit(at_quick);
  for (int i = 0; i < count; ++i) {
    long after_ms = random_below(&seed, LONGEST_MS);
    if (alive == at_once) reap(), --alive;
    int place = 0;
    while (running[place].pid) ++place;
    // With pthread_exit the process lasts as long as its thread.
    running[place].due_ms = now_ms() + (double)(is("pthread_exit") ? LONGEST_MS : after_ms);
    pid_t pid = fork();
    if (pid == 0) return child(who, after_ms);
    running[place].pid = pid;
    ++alive;
  }
  for (; alive; --alive) reap();
  for (int status = 0; status < 256; ++status) {
    if (statuses[status]) printf("status_%d %d\n", status, statuses[status]);
  }
  printf("killed %d\nlate %d\n", killed, late);
  printf("exit_handlers %d\nquick_exit_handlers %d\ndestructors %d\n", marks->exit_handlers,
         marks->quick_exit_handlers, marks->destructors);
  printf("at_latest %d\n", latest);
  return 0;
}
