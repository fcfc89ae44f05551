// at_rest [NAME]: nanoseconds of calls that libhappy hooks and has nothing to do with; NAME is looked up before, so
// that the engine is loaded.
//
// Prints "FUNCTION NANOSECONDS", the best of many rounds. Most calls fail at once (fd -1): what remains is the kernel's
// entry and the hook.
#define _GNU_SOURCE
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/nowhere"};
static const struct sockaddr_in unknown = {
    .sin_family = AF_INET, .sin_port = 0x5000, .sin_addr.s_addr = 0x017f};
static const struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                        .ai_socktype = SOCK_STREAM};
static const struct addrinfo own_host = {
    .ai_flags = AI_NUMERICSERV, .ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
static const struct addrinfo plain = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};

static void connect_unix(void) { connect(-1, (const struct sockaddr*)&local, sizeof local); }
static void connect_unknown(void) { connect(-1, (const struct sockaddr*)&unknown, sizeof unknown); }
static void lookup_null(void) {
  struct addrinfo* list;
  if (getaddrinfo(NULL, "80", &own_host, &list) == 0) freeaddrinfo(list);
}
static void bind_closed(void) { bind(-1, (const struct sockaddr*)&unknown, sizeof unknown); }
static void close_closed(void) { close(-1); }
static void dup2_closed(void) { dup2(-1, 99); }
static void poll_nothing(void) { poll(NULL, 0, 0); }
static void select_nothing(void) {
  struct timeval at_once = {0, 0};
  select(0, NULL, NULL, NULL, &at_once);
}
static void epoll_ctl_closed(void) {
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(-1, EPOLL_CTL_ADD, -1, &event);
}
static void epoll_wait_closed(void) {
  struct epoll_event event;
  epoll_wait(-1, &event, 1, 0);
}
static void getsockopt_closed(void) {
  int error;
  socklen_t length = sizeof error;
  getsockopt(-1, SOL_SOCKET, SO_ERROR, &error, &length);
}
static void sendto_closed(void) {
  sendto(-1, "", 0, 0, (const struct sockaddr*)&unknown, sizeof unknown);
}
static void sendmsg_closed(void) {
  const struct msghdr message = {0};
  sendmsg(-1, &message, 0);
}
static void recvfrom_closed(void) {
  struct sockaddr_storage from;
  socklen_t length = sizeof from;
  recvfrom(-1, NULL, 0, 0, (struct sockaddr*)&from, &length);
}
static void recvmsg_closed(void) {
  struct msghdr message = {0};
  recvmsg(-1, &message, 0);
}
static void listen_closed(void) { listen(-1, 1); }
static void accept_closed(void) { accept(-1, NULL, NULL); }
static void accept4_closed(void) { accept4(-1, NULL, NULL, 0); }
static void prctl_get(void) { prctl(PR_GET_DUMPABLE, 0, 0, 0, 0); }
static void syscall_getppid(void) { syscall(SYS_getppid); }

static void lookup(const struct addrinfo* hints) {
  struct addrinfo* list;
  if (getaddrinfo("192.0.2.1", "80", hints, &list) == 0) freeaddrinfo(list);
}
static void lookup_numeric(void) { lookup(&numeric); }
static void lookup_plain(void) { lookup(&plain); }
static void host_numeric(void) { gethostbyname("192.0.2.1"); }

static const struct {
  const char* name;
  void (*call)(void);
} table[] = {
    {"connect AF_UNIX", connect_unix},
    {"connect unknown address", connect_unknown},
    {"getaddrinfo AI_NUMERICHOST", lookup_numeric},
    {"getaddrinfo number", lookup_plain},
    {"getaddrinfo NULL", lookup_null},
    {"gethostbyname number", host_numeric},
    {"bind", bind_closed},
    {"close", close_closed},
    {"dup2", dup2_closed},
    {"poll", poll_nothing},
    {"select", select_nothing},
    {"epoll_ctl", epoll_ctl_closed},
    {"epoll_wait", epoll_wait_closed},
    {"getsockopt", getsockopt_closed},
    {"sendto", sendto_closed},
    {"sendmsg", sendmsg_closed},
    {"recvfrom", recvfrom_closed},
    {"recvmsg", recvmsg_closed},
    {"listen", listen_closed},
    {"accept", accept_closed},
    {"accept4", accept4_closed},
    {"prctl", prctl_get},
    {"syscall", syscall_getppid},
};

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(int words, char** word) {
  enum { ROUNDS = 120, CALLS = 300, FUNCTIONS = sizeof table / sizeof *table };
  double best[FUNCTIONS];
  struct addrinfo* list;
  if (words > 1 && getaddrinfo(word[1], "80", &plain, &list) == 0) freeaddrinfo(list);
  for (int f = 0; f < FUNCTIONS; ++f) best[f] = 1e18;
  for (int round = 0; round < ROUNDS; ++round) {
    for (int f = 0; f < FUNCTIONS; ++f) {
      const double start = now_ns();
      for (int i = 0; i < CALLS; ++i) table[f].call();
      const double took = (now_ns() - start) / CALLS;
      if (took < best[f]) best[f] = took;
    }
  }
  for (int f = 0; f < FUNCTIONS; ++f) printf("%s\t%.2f\n", table[f].name, best[f]);
  return 0;
}
