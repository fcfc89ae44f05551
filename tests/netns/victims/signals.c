// Signals of all kinds while connect() runs.
//
//   signals WHAT NAME PORT
//
// WHAT: child     SIGCHLD storm: short-lived children one after the other; SA_RESTART
//       stop      another process stops and continues this one every 40 ms
//       timer     SIGALRM every 10 ms, SA_RESTART
//       realtime  every catchable signal in turn, every 2 ms, SA_RESTART, sent by another process
//       flood     the same, as fast as it can send them
//       blocked   as realtime, but the program has them all blocked
//
// Connects to the first address only; reports how, and whether handlers ran on the program's own thread only.

#include "hardening.h"

static volatile sig_atomic_t elsewhere, handled;
static pid_t main_thread;
static volatile int done;

static void note(int number) {
  (void)number;
  handled = handled + 1;
  if (gettid() != main_thread) elsewhere = 1;
}

static pid_t start_tormentor(const char* what) {
  pid_t parent = getpid(), child = fork();
  if (child) return child;
  for (int number = 1; getppid() == parent; number = number % 64 + 1) {
    if (!strcmp(what, "stop")) {
      kill(parent, SIGSTOP), sleep_ms(20), kill(parent, SIGCONT), sleep_ms(20);
    } else {
      if (number != SIGKILL && number != SIGSTOP && number != SIGCONT &&
          (number < 32 || number > 33) && number != SIGTSTP && number != SIGTTIN &&
          number != SIGTTOU)
        kill(parent, number);
      sleep_ms(strcmp(what, "flood") ? 2 : 0.2);
    }
  }
  _exit(0);
}

static void* make_children(void* unused) {
  while (!done) {
    pid_t child = fork();
    if (!child) _exit(0);
    waitpid(child, NULL, 0);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const char* what = argv[1];
  main_thread = gettid();
  pid_t tormentor = 0;
  pthread_t maker;
  struct footprint before = footprint();
  struct addrinfo* list = look_up(argv[2], argv[3]);
  int of_all = !strcmp(what, "realtime") || !strcmp(what, "flood") || !strcmp(what, "blocked");
  for (int number = 1; number < 65; ++number) {
    int wanted = of_all || (number == SIGCHLD && !strcmp(what, "child")) ||
                 (number == SIGALRM && !strcmp(what, "timer"));
    if (wanted && number != SIGKILL && number != SIGSTOP) handle(number, note, SA_RESTART);
  }
  sigset_t all, old;
  sigfillset(&all);
  if (!strcmp(what, "blocked")) pthread_sigmask(SIG_SETMASK, &all, &old);
  if (!strcmp(what, "child")) {
    pthread_sigmask(SIG_SETMASK, &all, &old);  // the other thread takes none
    pthread_create(&maker, NULL, make_children, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
  }
  if (!strcmp(what, "timer")) {
    struct itimerval every = {{0, 10000}, {0, 10000}};
    setitimer(ITIMER_REAL, &every, NULL);
  }
  if (of_all || !strcmp(what, "stop")) tormentor = start_tormentor(what);

  double began = now_ms();
  int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
  int failed = connect(fd, list->ai_addr, list->ai_addrlen);
  printf("at_connect %s\nconnect_ms %.1f\n", outcome(failed), now_ms() - began);
  done = 1;
  if (!strcmp(what, "child")) pthread_join(maker, NULL);
  struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  if (tormentor) kill(tormentor, SIGKILL), kill(tormentor, SIGCONT), waitpid(tormentor, NULL, 0);
  printf(
      "handlers %s, %s\n",
      handled || !strcmp(what, "stop") || !strcmp(what, "blocked") ? "as they should" : "never ran",
      elsewhere ? "on another thread too" : "on the program's thread");
  if (!failed) printf("at_echo %d\n", echo_works(fd));
  close(fd);
  print_leftovers(before);
  return 0;
}
