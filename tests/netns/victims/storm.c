// Many threads that look up, connect, close each other's sockets, put others over them, and fork, for some seconds.
//
//   storm [-c] [-m] SECONDS THREADS SEED PORT NAME,ADDRESS,ADDRESS...
//
// -c: careful. No thread forks while another looks up: libc's getaddrinfo() has a lock (check_pf.c) that a child finds as it was.
// -m: mixed. Every thread connects now with a blocking socket, now with one that does not block, and waits for that by
// poll(), select() or epoll; and the process serves itself on the loopback by epoll, which all of them use too.
//
// The program itself is right: a socket that another thread has taken away is not used any more. Whatever connects must
// be one of the addresses of the name that this thread looked up, and echo the thread's own token. What is put over a
// socket in mid-connect must stay what it is. Afterwards no fd and no thread is left.

#include "hardening.h"

#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>

#define MAX_THREADS 256
#define CONNECT_LIMIT_MS 1500
#define TOKEN 16
#define SURELY_INSIDE_MS 20  // a thread that sleeps so long after it began has called connect()

enum state { idle, connecting, mine, taken, done };

struct slot {
  _Atomic int state, fd, over;  // over: the other end of what was put over the fd, or -1
  _Atomic pid_t thread;
  _Atomic double since_ms;  // when it was about to connect
} __attribute__((aligned(64)));

static struct slot slots[MAX_THREADS];
static char** names;
static int name_count, thread_count, careful, mixed, listener;
static pthread_rwlock_t lookups = PTHREAD_RWLOCK_INITIALIZER;
static struct sockaddr_in own_address = {.sin_family = AF_INET};
static const char* port;
static double stop_ms;
static uint64_t first_seed;
static atomic_long connects, connected, wrong_peer, wrong_token, no_token, taken_away, put_over,
    disturbed, forked, child_failed, lookups_failed;
static atomic_int clients_ended;

// Whom the fd is connected to, after a comma.
static void get_peer(int fd, char peer[NI_MAXHOST + 1]) {
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  strcpy(peer, ",");
  if (getpeername(fd, (struct sockaddr*)&address, &length)) return;
  getnameinfo((struct sockaddr*)&address, length, peer + 1, NI_MAXHOST, NULL, 0, NI_NUMERICHOST);
}

// Whether the fd is connected to one of the addresses that stand behind the name, as NAME,ADDRESS,ADDRESS... (a late
// answer may have joined the race, so getaddrinfo()'s list is not enough to tell).
static int has_address(const char* name, int fd) {
  char peer[NI_MAXHOST + 1];
  get_peer(fd, peer);
  const char* found = strstr(name, peer);
  return found && (found[strlen(peer)] == ',' || !found[strlen(peer)]);
}

// The same name as getaddrinfo() wants it.
static int ask(const char* name, struct addrinfo** list) {
  char plain[NI_MAXHOST] = "";
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  memcpy(plain, name, strcspn(name, ","));
  if (careful) pthread_rwlock_rdlock(&lookups);
  const int code = getaddrinfo(plain, port, &hints, list);
  if (careful) pthread_rwlock_unlock(&lookups);
  return code;
}

// Waits until the kernel has come to a result, or the time is over.
static void wait_by_random_way(int fd, uint64_t* seed) {
  const long way = fd < FD_SETSIZE ? random_below(seed, 3) : 0;
  if (way == 0) {
    struct pollfd p = {fd, POLLOUT, 0};
    poll(&p, 1, CONNECT_LIMIT_MS);
  } else if (way == 1) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    struct timeval limit = {CONNECT_LIMIT_MS / 1000, CONNECT_LIMIT_MS % 1000 * 1000};
    select(fd + 1, NULL, &set, NULL, &limit);
  } else {
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLOUT, .data.fd = fd};
    if (!epoll_ctl(set, EPOLL_CTL_ADD, fd, &event)) epoll_wait(set, &event, 1, CONNECT_LIMIT_MS);
    close(set);
  }
}

static int is_connected(int fd) {
  struct sockaddr_storage peer;
  socklen_t length = sizeof peer;
  return option(fd, SOL_SOCKET, SO_ERROR) == 0 &&
         !getpeername(fd, (struct sockaddr*)&peer, &length);
}

// To tell who has done it: libhappy puts other sockets behind the number, a stray connect() leaves the one that is there.
static void tell_wrong_peer(int fd, const char* name, uint64_t cookie) {
  char peer[NI_MAXHOST + 1];
  get_peer(fd, peer);
  printf("at_wrong_peer fd %d socket %s peer %s name %s\n", fd,
         view(fd).cookie == cookie ? "kept" : "replaced", peer + 1, name);
  wrong_peer++;
}

static void exchange(int fd, const char* name, uint64_t cookie, uint64_t* seed) {
  char sent[TOKEN], back[TOKEN];
  for (int i = 0; i < TOKEN; ++i) sent[i] = (char)random_after(seed);
  connected++;
  if (name && !has_address(name, fd)) tell_wrong_peer(fd, name, cookie);
  struct timeval patience = {5, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (send(fd, sent, TOKEN, MSG_NOSIGNAL) != TOKEN || recv(fd, back, TOKEN, MSG_WAITALL) != TOKEN) {
    no_token++;
  } else if (memcmp(sent, back, TOKEN)) {
    wrong_token++;
  }
}

// What lies over the fd is still what was put there, and has received nothing.
static void check_over(int fd, int other_end) {
  char byte;
  if (recv(other_end, &byte, 1, MSG_DONTWAIT) != -1 || recv(fd, &byte, 1, MSG_DONTWAIT) != -1 ||
      send(fd, "o", 1, MSG_NOSIGNAL) != 1 || recv(other_end, &byte, 1, MSG_DONTWAIT) != 1 ||
      byte != 'o')
    disturbed++;
  close(other_end);
  close(fd);
}

// A socket whose connect() ends within the limit.
static int limited_socket(int family, int flags) {
  int fd = socket(family, SOCK_STREAM | flags, 0);
  struct timeval limit = {CONNECT_LIMIT_MS / 1000, CONNECT_LIMIT_MS % 1000 * 1000};
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  return fd;
}

static void connect_once(struct slot* slot, const struct addrinfo* to, const char* name,
                         uint64_t* seed) {
  const int blocking = !mixed || random_below(seed, 2);
  int fd = limited_socket(to->ai_family, blocking ? 0 : SOCK_NONBLOCK);
  if (fd < 0) return;
  const uint64_t cookie = view(fd).cookie;
  slot->over = -1;
  slot->fd = fd;
  slot->since_ms = now_ms();
  slot->state = connecting;
  connects++;
  int failed = connect(fd, to->ai_addr, to->ai_addrlen), expected = connecting;
  const int begun = !blocking && failed && errno == EINPROGRESS;
  if (begun) wait_by_random_way(fd, seed);
  if (atomic_compare_exchange_strong(&slot->state, &expected, mine)) {
    if (begun) failed = !is_connected(fd);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    if (!failed) exchange(fd, name, cookie, seed);
    close(fd);
  } else {
    while (slot->state != done) sleep_ms(0.1);
    if (slot->over >= 0) check_over(fd, slot->over);
  }
  slot->state = idle;
}

// Whether the thread of a slot sleeps; one that waits for its turn of the processor does not.
static int sleeps(const struct slot* slot) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", slot->thread);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  const char* name_end = size > 0 ? strrchr(text, ')') : NULL;
  return name_end && !strncmp(name_end, ") S", 3);
}

// Takes the socket of a random thread away, if that is connecting.
//
// What is put over it may come at any time: the number stays taken. A number that is closed goes to the next who wants
// one, and whoever has not called connect() yet would then connect a stranger's socket.
static void take_away(uint64_t* seed) {
  struct slot* slot = &slots[random_below(seed, thread_count)];
  const double since_ms = slot->since_ms;
  int may_close = random_below(seed, 2) && now_ms() > since_ms + SURELY_INSIDE_MS && sleeps(slot);
  int expected = connecting, pair[2];
  if (slot->state != expected || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return;
  if (atomic_compare_exchange_strong(&slot->state, &expected, taken)) {
    may_close = may_close && slot->since_ms == since_ms;  // it still is the same connect()
    if (may_close) {
      close(slot->fd);
      taken_away++;
    } else {
      dup3(pair[0], slot->fd, O_CLOEXEC);
      slot->over = pair[1];
      put_over++;
    }
    slot->state = done;
    if (!may_close) pair[1] = -1;
  }
  close(pair[0]);
  if (pair[1] >= 0) close(pair[1]);
}

static int child_works(const char* name) {
  struct addrinfo* list;
  if (ask(name, &list)) return 0;
  for (const struct addrinfo* info = list; info; info = info->ai_next) {
    int fd = limited_socket(info->ai_family, 0);
    if (fd >= 0 && !connect(fd, info->ai_addr, info->ai_addrlen))
      return has_address(name, fd) && echo_works(fd);
    close(fd);
  }
  return 1;  // all dead at the moment
}

static void fork_once(const char* name) {
  if (careful) pthread_rwlock_wrlock(&lookups);
  pid_t child = fork();
  if (child == 0) {
    careful = 0;  // alone, and the lock as it was
    alarm(20);
    _exit(!child_works(name));
  }
  if (careful) pthread_rwlock_unlock(&lookups);
  if (child < 0) return;
  forked++;
  int status;
  if (waitpid(child, &status, 0) != child || status) child_failed++;
}

// Echoes on the loopback, in one thread, until all others have ended and nothing is left to be read.
static void* serve(void* unused) {
  int set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
  epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    const int last_round = clients_ended;
    if (epoll_wait(set, &event, 1, 50) != 1) {
      if (last_round) break;
      continue;
    }
    int fd = event.data.fd;
    if (fd == listener) {
      event.data.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (event.data.fd >= 0) epoll_ctl(set, EPOLL_CTL_ADD, event.data.fd, &event);
      continue;
    }
    char data[TOKEN];
    ssize_t size = recv(fd, data, sizeof data, 0);
    if (size > 0) send(fd, data, (size_t)size, MSG_NOSIGNAL);
    if (size > 0 || (size < 0 && errno == EAGAIN)) continue;
    epoll_ctl(set, EPOLL_CTL_DEL, fd,
              NULL);  // a forked child may hold the file, and its events go on
    close(fd);
  }
  close(set);
  return unused;
}

static void listen_on_loopback(void) {
  socklen_t length = sizeof own_address;
  own_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (bind(listener, (struct sockaddr*)&own_address, length) || listen(listener, 1024) ||
      getsockname(listener, (struct sockaddr*)&own_address, &length))
    perror("listen");
}

static void connect_to_own(struct slot* slot, uint64_t* seed) {
  const struct addrinfo own = {.ai_family = AF_INET,
                               .ai_addr = (struct sockaddr*)&own_address,
                               .ai_addrlen = sizeof own_address};
  connect_once(slot, &own, NULL, seed);
}

static void* run(void* argument) {
  struct slot* slot = argument;
  slot->thread = gettid();
  uint64_t seed = first_seed + (uint64_t)(slot - slots) * 7919;
  while (now_ms() < stop_ms) {
    const char* name = names[random_below(&seed, name_count)];
    struct addrinfo* list = NULL;
    if (ask(name, &list)) {
      lookups_failed++;
      sleep_ms(10);
      continue;
    }
    const struct addrinfo* to = list;
    if (random_below(&seed, 3) == 0 && to->ai_next) to = to->ai_next;
    connect_once(slot, to, name, &seed);
    freeaddrinfo(list);
    if (mixed && random_below(&seed, 4) == 0) connect_to_own(slot, &seed);
    for (long i = random_below(&seed, 3); i > 0; --i) take_away(&seed);
    if (random_below(&seed, 200) == 0) fork_once(name);
    sleep_ms((double)random_below(&seed, 60));
  }
  return NULL;
}

static void* nothing(void* unused) { return unused; }

static void start_and_end_a_thread(void) {
  pthread_t thread;
  if (!pthread_create(&thread, NULL, nothing, NULL)) pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
  if (argc > 1 && !strcmp(argv[1], "-c")) careful = 1, --argc, ++argv;
  if (argc > 1 && !strcmp(argv[1], "-m")) mixed = 1, --argc, ++argv;
  if (argc < 6) return 2;
  thread_count = atoi(argv[2]);
  first_seed = strtoull(argv[3], NULL, 10);
  port = argv[4];
  names = argv + 5;
  name_count = argc - 5;
  stop_ms = now_ms() + 1000 * atof(argv[1]);
  pthread_t threads[MAX_THREADS];
  start_and_end_a_thread();  // a sanitizer has one of its own from the first thread on
  struct footprint before = footprint();
  pthread_t server;
  if (mixed) listen_on_loopback();
  if (mixed) pthread_create(&server, NULL, serve, NULL);
  for (int i = 0; i < thread_count; ++i) pthread_create(&threads[i], NULL, run, &slots[i]);
  for (int i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
  clients_ended = 1;
  if (mixed) pthread_join(server, NULL);
  if (mixed) close(listener);
  printf(
      "at_numbers connects %ld, connected %ld, taken %ld, put over %ld, forked %ld, lookups failed "
      "%ld\n",
      connects, connected, taken_away, put_over, forked, lookups_failed);
  printf("wrong_peer %ld\nwrong_token %ld\nno_token %ld\ndisturbed %ld\nchild_failed %ld\n",
         wrong_peer, wrong_token, no_token, disturbed, child_failed);
  printf("enough %d\n", connected > 100);
  print_leftovers(before);
  return 0;
}
