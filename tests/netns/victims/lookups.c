// Lookups by programs with habits of their own.
//
//   lookups WHAT NAME...
//
// WHAT: all           getaddrinfo() for each name, with and without AI_CANONNAME
//       combinations  getaddrinfo() with every combination of family, type, service, flags, for each name
//       short         _res says one second, one try
//       nameserver    _res says 198.51.100.53
//       parked        thirty lookups, answered or not; the fds at once and when all must have gone
//       parked-threads  the same in a threaded program
//       forking       a thread looks up for the first time while the main thread forks
//       threads       forty threads look up and connect at once

#include "hardening.h"

#include <resolv.h>

static void print_address(const struct sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address->sa_family == AF_INET)
    inet_ntop(AF_INET, &((const struct sockaddr_in*)address)->sin_addr, text, sizeof text);
  if (address->sa_family == AF_INET6) {
    const struct sockaddr_in6* six = (const struct sockaddr_in6*)address;
    inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
    if (six->sin6_flowinfo || six->sin6_scope_id)
      printf("flow %x scope %u ", six->sin6_flowinfo, six->sin6_scope_id);
  }
  printf("%s:%d", text, ntohs(((const struct sockaddr_in*)address)->sin_port));
}

// In one line, with everything that a program can see.
static void ask(const char* name, const char* service, const struct addrinfo* hints) {
  struct addrinfo* list = NULL;
  errno = 0;
  int code = getaddrinfo(name, service, hints, &list);
  printf("%.70s|%s|", name, service ? service : "-");
  if (hints) printf("%d %d %x|", hints->ai_family, hints->ai_socktype, (unsigned)hints->ai_flags);
  if (code) printf("%s %s", gai_strerror(code), code == EAI_SYSTEM ? strerrorname_np(errno) : "");
  for (const struct addrinfo* info = list; info; info = info->ai_next) {
    printf("[%x %d %d %d %u ", (unsigned)info->ai_flags, info->ai_family, info->ai_socktype,
           info->ai_protocol, (unsigned)info->ai_addrlen);
    print_address(info->ai_addr);
    printf(" %s]", info->ai_canonname ? info->ai_canonname : "");
  }
  puts("");
  if (list) freeaddrinfo(list);
}

static void ask_plainly(const char* name) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_CANONNAME};
  ask(name, "80", NULL);
  ask(name, "80", &hints);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void ask_in_every_way(const char* name) {
  static const char* const services[] = {NULL, "80", "domain", "nosuchservice"};
  static const int families[] = {AF_UNSPEC, AF_INET, AF_INET6},
                   types[] = {0, SOCK_STREAM, SOCK_DGRAM};
  static const int flags[] = {0,
                              AI_CANONNAME,
                              AI_ADDRCONFIG,
                              AI_V4MAPPED,
                              AI_V4MAPPED | AI_ALL,
                              AI_ALL,
                              AI_NUMERICSERV,
                              AI_NUMERICHOST,
                              AI_PASSIVE,
                              AI_CANONNAME | AI_ADDRCONFIG | AI_V4MAPPED,
                              AI_V4MAPPED | AI_ADDRCONFIG | AI_PASSIVE,
                              0x8000};
  for (size_t i = 0; i < COUNT(services) * COUNT(families) * COUNT(types) * COUNT(flags); ++i) {
    size_t rest = i;
    struct addrinfo hints = {.ai_flags = flags[rest % COUNT(flags)]};
    rest /= COUNT(flags);
    hints.ai_socktype = types[rest % COUNT(types)];
    rest /= COUNT(types);
    hints.ai_family = families[rest % COUNT(families)];
    ask(name, services[rest / COUNT(families)], &hints);
  }
}

static void ask_with_own_state(const char* what, const char* name) {
  res_init();
  if (!strcmp(what, "short")) {
    _res.retrans = 1, _res.retry = 1;
  } else {
    inet_pton(AF_INET, "198.51.100.53", &_res.nsaddr_list[0].sin_addr);
    _res.nscount = 1;
  }
  double began = now_ms();
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
  int code = getaddrinfo(name, "7", &hints, &list);
  printf("answer %s\nanswer_ms %.1f\n", code ? gai_strerror(code) : address_text(list->ai_addr),
         now_ms() - began);
}

static void leave_many_parked(const char* name) {
  struct footprint before = footprint();
  for (int i = 0; i < 30; ++i) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    if (!getaddrinfo(name, "7", &hints, &list)) freeaddrinfo(list);
  }
  printf("at_once_fds_more %d\n", open_fds() - before.fds);
  // Of use for 5 s. A process without threads notices at its next call.
  sleep_ms(5500);
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
  if (!getaddrinfo(name, "7", &hints, &list)) freeaddrinfo(list);
  print_leftovers(before);
}

static volatile int first_lookup_done;
static void* look_up_first(void* name) {
  struct addrinfo* list;
  if (!getaddrinfo(name, "7", NULL, &list)) freeaddrinfo(list);
  first_lookup_done = 1;
  return NULL;
}

// The mask of the forking thread is its own affair, and a lock of the loading is not left locked. The children do not
// look up while the thread does: bare, too, one in a thousand finds a lock of glibc's taken.
static void fork_while_loading(char* name) {
  sigset_t one, mask;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, NULL);
  pthread_t thread;
  int lost = 0;
  pthread_create(&thread, NULL, look_up_first, name);
  for (int i = 0; i < 40 && !first_lookup_done; ++i) {
    pid_t child = fork();
    if (!child) _exit(0);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    if (!sigismember(&mask, SIGUSR1)) ++lost;
    waitpid(child, NULL, 0);
  }
  alarm(12);
  pthread_join(thread, NULL);
  struct addrinfo* list;
  printf("mask_lost %d\nlater %d\n", lost, getaddrinfo(name, "7", NULL, &list));
}

#define THREADS 40
static pthread_barrier_t together;
static volatile int succeeded;
static void* look_up_and_connect(void* name) {
  pthread_barrier_wait(&together);
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
  int fd = getaddrinfo(name, "7", &hints, &list) ? -1 : connect_first(list);
  if (fd >= 0 && echo_works(fd)) __atomic_fetch_add(&succeeded, 1, __ATOMIC_RELAXED);
  close(fd);
  return NULL;
}

static void ask_in_threads(char* name) {
  pthread_t threads_[THREADS];
  struct footprint before = footprint();
  double began = now_ms();
  pthread_barrier_init(&together, NULL, THREADS);
  for (int i = 0; i < THREADS; ++i) pthread_create(&threads_[i], NULL, look_up_and_connect, name);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads_[i], NULL);
  printf("at_succeeded %d\nall_ms %.1f\n", succeeded, now_ms() - began);
  print_leftovers(before);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* what = argv[1];
  if (!strcmp(what, "parked-threads")) start_idle_thread();
  for (int i = 2; i < argc; ++i) {
    if (!strcmp(what, "all")) ask_plainly(argv[i]);
    if (!strcmp(what, "combinations")) ask_in_every_way(argv[i]);
    if (!strcmp(what, "short") || !strcmp(what, "nameserver")) ask_with_own_state(what, argv[i]);
    if (!strncmp(what, "parked", 6)) leave_many_parked(argv[i]);
    if (!strcmp(what, "forking")) fork_while_loading(argv[i]);
    if (!strcmp(what, "threads")) ask_in_threads(argv[i]);
  }
  return 0;
}
