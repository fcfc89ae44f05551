// Sockets that are shared, odd calls of connect(), and two threads in one.
//
//   sockets WHAT NAME PORT
//
// WHAT: alias    the fd was dup()ed and is in an epoll set before connect()
//       family   the parent makes the socket, a child connects it, the parent uses it
//       threads  two threads connect() the same fd, sixteen times at once
//       strange  connect() with every wrong argument, twice, listening, non-blocking ...

#include "hardening.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>

static struct addrinfo* list;
static int fd;

static int make(void) { return socket(list->ai_family, SOCK_STREAM, 0); }
static int to_first(int number) { return connect(number, list->ai_addr, list->ai_addrlen); }
static const char* result(int failed) { return failed ? strerrorname_np(errno) : "ok"; }

static void alias(void) {
  fd = make();
  int other = dup(fd), set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.fd = fd};
  epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
  printf("connect %s\n", outcome(to_first(fd)));
  printf("send_on_the_other %s\n", result(send(other, "x", 1, MSG_NOSIGNAL) != 1));
  int count = epoll_wait(set, &event, 1, 1000);
  printf("epoll %d 0x%x\n", count, count > 0 ? event.events : 0);
  printf("same %d\n", view(fd).cookie == view(other).cookie);
}

static void family(void) {
  fd = make();
  pid_t child = fork();
  if (!child) _exit(to_first(fd) ? errno : 0);
  int status;
  waitpid(child, &status, 0);
  printf("child %d\n", WEXITSTATUS(status));
  printf("peer %s\n", peer_text(fd));
  printf("send %s\n", result(send(fd, "x", 1, MSG_NOSIGNAL) != 1));
}

#define PAIRS 16
static struct {
  pthread_barrier_t together;
  pthread_t threads[2];
  int fd;
} pairs[PAIRS];

static void* connect_shared(void* pair) {
  const size_t i = (size_t)(intptr_t)pair;
  pthread_barrier_wait(&pairs[i].together);
  // EISCONN: this thread came to it when the other's connect() was over.
  return (void*)(intptr_t)(to_first(pairs[i].fd) && errno != EISCONN ? errno : 0);
}

static void begin_pair(size_t i) {
  pthread_barrier_init(&pairs[i].together, NULL, 2);
  pairs[i].fd = make();
  for (int j = 0; j < 2; ++j)
    pthread_create(&pairs[i].threads[j], NULL, connect_shared, (void*)(intptr_t)i);
}

static void two_threads(void) {
  for (size_t i = 0; i < PAIRS; ++i) begin_pair(i);
  for (size_t i = 0; i < PAIRS; ++i) {
    void* errors[2];
    for (int j = 0; j < 2; ++j) pthread_join(pairs[i].threads[j], &errors[j]);
    int ok = !errors[0] + !errors[1];
    printf("%d ok, %d in all, echo %d\n", ok, (int)((intptr_t)errors[0] + (intptr_t)errors[1]),
           ok ? echo_works(pairs[i].fd) : -1);
    close(pairs[i].fd);
  }
}

static void say(const char* text, int failed) { printf("%s %s\n", text, result(failed)); }

static void wrong_lengths(void) {
  struct sockaddr_storage copy;
  memset(&copy, 0, sizeof copy);
  memcpy(&copy, list->ai_addr, list->ai_addrlen);
  char* large = calloc(1, 65536);
  memcpy(large, &copy, sizeof copy);
  static const int lengths[] = {0, 1, 2, 15, 16, 23, 24, 27, 28, 29, 39, 128, 129, 4096, 65536, -1};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    fd = make();
    printf("length %d ", lengths[i]);
    say("", connect(fd, (struct sockaddr*)large, (socklen_t)lengths[i]));
    close(fd);
  }
  free(large);
  fd = make();
  say("efault", connect(fd, (struct sockaddr*)8, 16));
  say("efault_28", connect(fd, (struct sockaddr*)8, 28));
}

static void wrong_sockets(void) {
  say("closed", to_first(1000));
  say("minus_one", to_first(-1));
  say("file", to_first(open("/dev/null", O_RDONLY)));
  say("path", to_first(open("/dev/null", O_PATH)));
  fd = make();
  listen(fd, 1);
  say("listening", to_first(fd));
  say("other_family",
      to_first(socket(list->ai_family == AF_INET6 ? AF_INET : AF_INET6, SOCK_STREAM, 0)));
  say("datagram", to_first(socket(list->ai_family, SOCK_DGRAM, 0)));
  say("unix", to_first(socket(AF_UNIX, SOCK_STREAM, 0)));
}

static void strange(void) {
  fd = make();
  errno = 77;
  int failed = to_first(fd);
  printf("errno_untouched %d\n", failed || errno == 77);
  printf("first %s\n", failed ? "failed" : "ok");
  if (!failed) say("again", to_first(fd));
  wrong_lengths();
  wrong_sockets();
  struct rlimit limit = {4096, 4096};
  setrlimit(RLIMIT_NOFILE, &limit);
  say("high_number", to_first(dup2(make(), 2000)));
  struct sockaddr none = {.sa_family = AF_UNSPEC};
  fd = make();
  say("unspec", connect(fd, &none, sizeof none));
  say("after_unspec", to_first(fd));
  say("unspec", connect(fd, &none, sizeof none));
  say("after_unspec", to_first(fd));
  struct sockaddr_storage any = {.ss_family = list->ai_addr->sa_family};
  fd = make();
  say("bind", bind(fd, (struct sockaddr*)&any, list->ai_addrlen));
  say("after_bind", to_first(fd));
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  list = look_up(argv[2], argv[3]);
  if (!strcmp(argv[1], "alias")) alias();
  if (!strcmp(argv[1], "family")) family();
  if (!strcmp(argv[1], "threads")) two_threads();
  if (!strcmp(argv[1], "strange")) strange();
  return 0;
}
