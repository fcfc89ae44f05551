// For the victims of the hardening tests: what a program looks like from inside, before and after. Runs with and
// without libhappy are compared line by line. A key that ends in _ms is a time and may differ a little; one that
// begins with at_ is a moment on CLOCK_MONOTONIC and is not compared.

#pragma once

#include "victim.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

// Line by line, so that what a victim said before it hung is seen, and no child of fork() says it again.
__attribute__((constructor)) static inline void print_by_lines(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
}

static inline double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static inline void sleep_ms(double ms) {
  for (double end = now_ms() + ms, left; (left = end - now_ms()) > 0;) {
    struct timespec rest = {(time_t)(left / 1e3), (long)((left - 1e3 * (long)(left / 1e3)) * 1e6)};
    nanosleep(&rest, NULL);
  }
}

static inline int threads(void) { return entries("/proc/self/task"); }

static inline const char* blocked_signals(void) {
  static char text[65];
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, NULL, &blocked);
  for (int number = 1; number < 65; ++number)
    text[number - 1] = sigismember(&blocked, number) == 1 ? '1' : '0';
  return text;
}

struct footprint {
  int fds, threads;
};

static inline struct footprint footprint(void) { return (struct footprint){open_fds(), threads()}; }

// Names what is open, one line each.
static inline void print_fds(void) {
  for (int fd = 0; fd < 1024; ++fd) {
    char path[32], target[256];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length >= 0) printf("fd_%d %.*s\n", fd, (int)length, target);
  }
}

// What is left more than `before`, once what is only waiting for something has gone.
static inline void print_leftovers(struct footprint before) {
  struct footprint now = footprint();
  for (double end = now_ms() + SETTLE_MS; now_ms() < end; now = footprint()) {
    if (now.fds == before.fds && now.threads == before.threads) break;
    sleep_ms(20);
  }
  printf("fds_more %d\nthreads_more %d\n", now.fds - before.fds, now.threads - before.threads);
  printf("blocked_signals %s\n", blocked_signals());
  if (now.fds > before.fds) print_fds();
}

// Everything about a socket that can be read without changing it.
struct socket_view {
  uint64_t cookie;
  struct timeval send_timeout;
  int state, flags, fd_flags;
};

static inline struct socket_view view(int fd) {
  struct socket_view v;
  memset(&v, 0, sizeof v);
  socklen_t length = sizeof v.cookie;
  if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &v.cookie, &length)) v.cookie = 0;
  length = sizeof v.send_timeout;
  getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &v.send_timeout, &length);
  struct tcp_info info = {0};
  length = sizeof info;
  v.state = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) ? -1 : info.tcpi_state;
  v.flags = fcntl(fd, F_GETFL);
  v.fd_flags = fcntl(fd, F_GETFD);
  return v;
}

static inline int views_equal(const struct socket_view* a, const struct socket_view* b) {
  return a->cookie == b->cookie && a->send_timeout.tv_sec == b->send_timeout.tv_sec &&
         a->send_timeout.tv_usec == b->send_timeout.tv_usec && a->state == b->state &&
         a->flags == b->flags && a->fd_flags == b->fd_flags;
}

static inline void print_view(const char* when, const struct socket_view* v,
                              uint64_t cookie_before) {
  printf("%s socket %s, state %d, sndtimeo %ld.%06ld, flags %x %x\n", when,
         v->cookie == cookie_before ? "kept" : "replaced", v->state, (long)v->send_timeout.tv_sec,
         (long)v->send_timeout.tv_usec, (unsigned)v->flags, (unsigned)v->fd_flags);
}

// Sends a signal to the process after so many ms, once.
static inline void signal_after(int number, long ms) {
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer)) perror("timer_create");
  struct itimerspec when = {.it_value = {ms / 1000, ms % 1000 * 1000000}};
  timer_settime(timer, 0, &when, NULL);
}

static inline void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(number, &action, NULL);
}

static inline void block_all_signals(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static inline void* sleep_for_ever(void* unused) {
  block_all_signals();
  for (;;) pause();
  return unused;
}

// So that the process is not single-threaded; the thread takes no signals.
static inline void start_idle_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, sleep_for_ever, NULL)) perror("pthread_create");
}

static inline const char* outcome(int failed) {
  return failed ? strerrorname_np(errno) : "connected";
}

// One socket connected to the list's first address; -1 with errno.
static inline int connect_first(const struct addrinfo* list) {
  int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
  if (fd < 0) return -1;
  if (!connect(fd, list->ai_addr, list->ai_addrlen)) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// One socket connected to the first of the list's addresses that takes it; -1 with the last one's errno.
static inline int connect_in_turn(const struct addrinfo* list) {
  int fd = -1;
  for (; list && fd < 0; list = list->ai_next) fd = connect_first(list);
  return fd;
}

// The numbers of the open fds, in order; their own folder's left out.
static inline const char* fd_numbers(void) {
  static char text[4096];
  size_t used = 0;
  text[0] = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0)
      used += (size_t)snprintf(text + used, sizeof text - used, "%d,", fd);
    if (used > sizeof text - 8) break;
  }
  return text;
}

// The same numbers in every run of a seed (SplitMix64).
static inline uint64_t random_after(uint64_t* seed) {
  uint64_t z = (*seed += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

static inline long random_below(uint64_t* seed, long limit) {
  return (long)(random_after(seed) % (uint64_t)limit);
}
