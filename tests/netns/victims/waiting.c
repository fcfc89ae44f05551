// Connects without blocking and waits for the outcome in one of the ways that programs wait.
//
//   waiting STYLE THREADS NAME PORT
//
// STYLE: see `styles`; THREADS: 1, or 2 for a second thread that only sleeps. The server at PORT must speak first,
// for those that wait to read. Prints one line for each address tried: the events up to and with the first that
// tells the outcome, and SO_ERROR. Exit status 0: connected, and the server has spoken.

#include "hardening.h"

#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>

// What a program that was compiled with _FORTIFY_SOURCE calls.
int __poll_chk(struct pollfd*, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd*, nfds_t, const struct timespec*, const sigset_t*, size_t);

#define PATIENCE_MS 9000
#define DATA 0x1122334455667788ULL

static const char* style;
static int fd, other = -1, set = -1, outer = -1, second = -1;
static char seen[512];

static int is(const char* what) { return !strcmp(style, what); }
static int begins(const char* what) { return !strncmp(style, what, strlen(what)); }

static void note(const char* format, unsigned value) {
  size_t used = strlen(seen);
  snprintf(seen + used, sizeof seen - used, format, value);
}

// Whether the kernel has come to a result: SYN_SENT no longer.
static int is_settled(void) {
  struct pollfd p = {fd, POLLOUT, 0};
  return poll(&p, 1, 0) == 1;
}

static int watched(void) { return other >= 0 ? other : fd; }

static void wait_poll(short events) {
  struct pollfd p = {watched(), events, 0};
  struct timespec limit = {PATIENCE_MS / 1000, 0};
  int n = is("ppoll")       ? ppoll(&p, 1, &limit, NULL)
          : is("ppoll-chk") ? __ppoll_chk(&p, 1, &limit, NULL, sizeof p)
          : is("poll-chk")  ? __poll_chk(&p, 1, PATIENCE_MS, sizeof p)
                            : poll(&p, 1, PATIENCE_MS);
  note(n < 0 ? "error" : n == 0 ? "nothing" : "%x", (unsigned)p.revents);
}

// The socket is the last of many that it waits to read from.
static void wait_poll_many(void) {
  enum { MANY = 200 };
  struct pollfd p[MANY + 1];
  int silent[2];
  if (pipe(silent)) return note("no pipe", 0);
  for (int i = 0; i < MANY; ++i) p[i] = (struct pollfd){silent[0], POLLIN, 0};
  p[MANY] = (struct pollfd){fd, POLLIN, 0};
  int n = poll(p, MANY + 1, PATIENCE_MS);
  note(n < 0 ? "error" : n == 0 ? "nothing" : "%x", (unsigned)p[MANY].revents);
  close(silent[0]), close(silent[1]);
}

static void look_once(int number) {
  (void)number;
  struct pollfd p = {fd, POLLOUT, 0};
  poll(&p, 1, 0);
}

// A signal handler is the first to look.
static void wait_after_handler(void) {
  signal(SIGUSR1, look_once);
  sleep_ms(300);
  raise(SIGUSR1);
  wait_poll(POLLOUT);
}

static void wait_select(int reading) {
  fd_set read_set, write_set, except_set;
  FD_ZERO(&read_set);
  FD_ZERO(&write_set);
  FD_ZERO(&except_set);
  FD_SET(fd, reading ? &read_set : &write_set);
  FD_SET(fd, &except_set);
  struct timeval limit = {PATIENCE_MS / 1000, 0};
  struct timespec limit_ns = {PATIENCE_MS / 1000, 0};
  int n = is("pselect") ? pselect(fd + 1, &read_set, &write_set, &except_set, &limit_ns, NULL)
                        : select(fd + 1, &read_set, &write_set, &except_set, &limit);
  if (n <= 0) return note("nothing%d", (unsigned)n);
  note("%u", (unsigned)n);
  if (FD_ISSET(fd, &read_set)) note("r", 0);
  if (FD_ISSET(fd, &write_set)) note("w", 0);
  if (FD_ISSET(fd, &except_set)) note("x", 0);
}

static unsigned epoll_events(void) {
  unsigned events = EPOLLOUT;
  if (begins("epoll-edge")) events |= EPOLLET | EPOLLIN | EPOLLRDHUP;
  if (begins("epoll-oneshot")) events |= EPOLLONESHOT;
  if (is("epoll-exclusive")) events |= EPOLLEXCLUSIVE;
  if (is("epoll-in")) events = EPOLLIN;
  return events;
}

static void add(int to, int what, unsigned events) {
  struct epoll_event event = {.events = events, .data.u64 = DATA + (unsigned)to};
  if (epoll_ctl(to, EPOLL_CTL_ADD, what, &event)) note("ADD failed %u ", (unsigned)errno);
}

static void make_sets(void) {
  if (set >= 0) close(set);
  if (second >= 0) close(second);
  if (outer >= 0) close(outer);
  set = epoll_create1(EPOLL_CLOEXEC);
  second = is("epoll-two") ? epoll_create1(EPOLL_CLOEXEC) : -1;
  outer = is("epoll-nested") ? epoll_create1(EPOLL_CLOEXEC) : -1;
}

static void register_fd(void) {
  make_sets();
  add(set, watched(), epoll_events());
  if (second >= 0) add(second, fd, EPOLLOUT | EPOLLIN);
  if (outer >= 0) add(outer, set, EPOLLIN);
}

static int wait_once(int which, struct epoll_event* event) {
  struct timespec limit = {PATIENCE_MS / 1000, 0};
  if (is("epoll-pwait")) return epoll_pwait(which, event, 1, PATIENCE_MS, NULL);
  if (is("epoll-pwait2")) return epoll_pwait2(which, event, 1, &limit, NULL);
  return epoll_wait(which, event, 1, PATIENCE_MS);
}

static void wait_set(int which) {
  struct epoll_event event = {0};
  int n;
  do {
    n = wait_once(which, &event);
  } while (n < 0 && errno == EINTR);
  if (n != 1) return note("nothing%d", (unsigned)n);
  if (which == outer) {
    note("%x/", event.events);
    return wait_set(set);
  }
  note("%x", event.events);
  if (event.data.u64 != DATA + (unsigned)which) note(" wrong data", 0);
}

// What a program does with its registration afterwards.
static void use_registration(void) {
  struct epoll_event event = {.events = EPOLLOUT, .data.u64 = 7};
  if (is("epoll-exclusive")) {
    if (epoll_ctl(set, EPOLL_CTL_DEL, watched(), NULL)) note(" DEL failed %u", (unsigned)errno);
    return;
  }
  if (epoll_ctl(set, EPOLL_CTL_MOD, watched(), &event)) note(" MOD failed %u", (unsigned)errno);
  if (epoll_wait(set, &event, 1, 0) != 1 || event.data.u64 != 7) note(" MOD has no effect", 0);
  if (epoll_ctl(set, EPOLL_CTL_DEL, watched(), NULL)) note(" DEL failed %u", (unsigned)errno);
  if (epoll_wait(set, &event, 1, 0) != 0) note(" a ghost %x", event.events);
}

static int modifying;
static unsigned failed_mods;

static void* modify(void* unused) {
  for (unsigned i = 0; __atomic_load_n(&modifying, __ATOMIC_ACQUIRE); ++i) {
    struct epoll_event event = {.events = EPOLLOUT | (i % 2 ? EPOLLPRI : 0),
                                .data.u64 = DATA + (unsigned)set};
    int failed = is("epoll-modified-raw")
                     ? (int)syscall(SYS_epoll_ctl, set, EPOLL_CTL_MOD, fd, &event)
                     : epoll_ctl(set, EPOLL_CTL_MOD, fd, &event);
    if (failed) ++failed_mods;
    if (i % 64 == 0) usleep(10);
  }
  return unused;
}

static void wait_modified(void) {
  pthread_t thread;
  modifying = 1;
  pthread_create(&thread, NULL, modify, NULL);
  wait_set(set);
  __atomic_store_n(&modifying, 0, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  if (failed_mods) note(" %u MODs failed", failed_mods);
}

static void ask_for_signals(void) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGRTMIN), sigaddset(&mask, SIGIO);
  pthread_sigmask(SIG_BLOCK, &mask, NULL);
  fcntl(fd, F_SETOWN, getpid());
  if (is("sigio-info")) fcntl(fd, F_SETSIG, SIGRTMIN);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC);
}

static void wait_signal(void) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGRTMIN), sigaddset(&mask, SIGIO);
  for (double end = now_ms() + PATIENCE_MS; now_ms() < end;) {
    siginfo_t info;
    struct timespec limit = {0, 200000000};  // a program with signals does something else meanwhile
    int number = sigtimedwait(&mask, &info, &limit);
    if (number < 0) {
      struct pollfd none = {-1, 0, 0};
      poll(&none, 1, 0);
      continue;
    }
    if (!is_settled()) continue;  // a signal that tells nothing
    note(number == SIGIO ? "io" : "rt", 0);
    if (number != SIGIO)
      note(" code %u", (unsigned)info.si_code), note(" band %x", (unsigned)info.si_band);
    if (number != SIGIO && info.si_fd != fd) note(" of fd %u", (unsigned)info.si_fd);
    return;
  }
  note("nothing", 0);
}

static void before_connect(void) {
  if (begins("dup-before")) other = dup(fd);
  if (is("epoll-level-before") || is("epoll-edge-before") || is("epoll-oneshot-before"))
    register_fd();
  if (begins("sigio")) ask_for_signals();
}

static void wait_for_outcome(void) {
  if (begins("dup-during")) sleep_ms(is("dup-during-late-poll") ? 400 : 100), other = dup(fd);
  if (begins("epoll") && set < 0) register_fd();
  if (is("dup-before-epoll") || is("dup-during-epoll")) register_fd();
  if (is("poll-out") || is("ppoll") || is("poll-chk") || is("ppoll-chk") || is("dup-before-poll") ||
      is("dup-during-poll") || is("dup-during-late-poll"))
    wait_poll(POLLOUT);
  else if (is("poll-in"))
    wait_poll(POLLIN);
  else if (is("poll-in-many"))
    wait_poll_many();
  else if (is("poll-in-handler"))
    wait_after_handler();
  else if (is("poll-all"))
    wait_poll(POLLIN | POLLOUT | POLLPRI);
  else if (is("select") || is("pselect"))
    wait_select(0);
  else if (is("select-in"))
    wait_select(1);
  else if (is("epoll-nested"))
    wait_set(outer);
  else if (begins("epoll-modified"))
    wait_modified();
  else if (begins("sigio"))
    wait_signal();
  else
    wait_set(set);
  if (is("epoll-two")) note(" and ", 0), wait_set(second);
  if (set >= 0 && !begins("epoll-modified")) use_registration();
}

static int attempt(const struct addrinfo* info) {
  fd = socket(info->ai_family, info->ai_socktype | SOCK_NONBLOCK, info->ai_protocol);
  seen[0] = 0;
  other = set = second = outer = -1;
  before_connect();
  double began = now_ms();
  if (connect(fd, info->ai_addr, info->ai_addrlen) == 0) note("at once", 0);
  if (errno != EINPROGRESS) note("connect %u", (unsigned)errno);
  wait_for_outcome();
  int error = option(fd, SOL_SOCKET, SO_ERROR);
  printf("%s so_error %s\n", seen, error ? strerrorname_np(error) : "0");
  printf("took_ms %.0f\n", now_ms() - began);
  if (other >= 0 && !error) {
    close(fd);
    fd = other, other = -1;
  }
  char byte;
  struct pollfd p = {fd, POLLIN, 0};
  int works = !error && poll(&p, 1, 3000) == 1 && read(fd, &byte, 1) == 1;
  if (!error) printf("%s\n", works ? "spoken to" : "silent");
  close(fd);
  if (other >= 0) close(other);
  if (set >= 0) close(set);
  return works;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  style = argv[1];
  if (atoi(argv[2]) > 1) start_idle_thread();
  const struct addrinfo* list = look_up(argv[3], argv[4]);
  if (getenv("WAITING_ROOT") && chroot(getenv("WAITING_ROOT"))) perror("chroot");
  for (const struct addrinfo* info = list; info; info = info->ai_next) {
    if (attempt(info)) return 0;
  }
  return 1;
}
