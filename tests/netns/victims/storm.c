// Many threads that look up, connect, close each other's sockets, put others over them, and fork, for some seconds.
//
//   storm SECONDS THREADS SEED PORT NAME,ADDRESS,ADDRESS...
//
// The program itself is right: a socket that another thread has taken away is not used any more. Whatever connects must
// be one of the addresses of the name that this thread looked up, and echo the thread's own token. What is put over a
// socket in mid-connect must stay what it is. Afterwards no fd and no thread is left.

#include "hardening.h"

#include <stdatomic.h>

#define MAX_THREADS 256
#define CONNECT_LIMIT_MS 1500
#define TOKEN 16

enum state { idle, connecting, mine, taken, done };

struct slot {
  _Atomic int state, fd, over;  // over: the other end of what was put over the fd, or -1
} __attribute__((aligned(64)));

static struct slot slots[MAX_THREADS];
static char** names;
static int name_count, thread_count;
static const char* port;
static double stop_ms;
static uint64_t first_seed;
static atomic_long connects, connected, wrong_peer, wrong_token, no_token, taken_away, put_over,
    disturbed, forked, child_failed, lookups_failed;

// Whether the fd is connected to one of the addresses that stand behind the name, as NAME,ADDRESS,ADDRESS... (a late
// answer may have joined the race, so getaddrinfo()'s list is not enough to tell).
static int has_address(const char* name, int fd) {
  char peer[NI_MAXHOST + 1] = ",";
  struct sockaddr_storage address;
  socklen_t length = sizeof address;
  if (getpeername(fd, (struct sockaddr*)&address, &length)) return 0;
  getnameinfo((struct sockaddr*)&address, length, peer + 1, sizeof peer - 1, NULL, 0,
              NI_NUMERICHOST);
  const char* found = strstr(name, peer);
  return found && (found[strlen(peer)] == ',' || !found[strlen(peer)]);
}

// The same name as getaddrinfo() wants it.
static int ask(const char* name, struct addrinfo** list) {
  char plain[NI_MAXHOST] = "";
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  memcpy(plain, name, strcspn(name, ","));
  return getaddrinfo(plain, port, &hints, list);
}

static void exchange(int fd, const char* name, uint64_t* seed) {
  char sent[TOKEN], back[TOKEN];
  for (int i = 0; i < TOKEN; ++i) sent[i] = (char)random_after(seed);
  connected++;
  if (!has_address(name, fd)) wrong_peer++;
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

static void connect_once(struct slot* slot, const struct addrinfo* to, const char* name,
                         uint64_t* seed) {
  int fd = socket(to->ai_family, to->ai_socktype, to->ai_protocol);
  if (fd < 0) return;
  struct timeval limit = {CONNECT_LIMIT_MS / 1000, CONNECT_LIMIT_MS % 1000 * 1000};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  slot->over = -1;
  slot->fd = fd;
  slot->state = connecting;
  connects++;
  int failed = connect(fd, to->ai_addr, to->ai_addrlen), expected = connecting;
  if (atomic_compare_exchange_strong(&slot->state, &expected, mine)) {
    if (!failed) exchange(fd, name, seed);
    close(fd);
  } else {
    while (slot->state != done) sleep_ms(0.1);
    if (slot->over >= 0) check_over(fd, slot->over);
  }
  slot->state = idle;
}

// Takes the socket of a random thread away, if that is connecting.
static void take_away(uint64_t* seed) {
  struct slot* slot = &slots[random_below(seed, thread_count)];
  int expected = connecting;
  if (!atomic_compare_exchange_strong(&slot->state, &expected, taken)) return;
  int pair[2];
  if (random_below(seed, 2) && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
    dup3(pair[0], slot->fd, O_CLOEXEC);
    close(pair[0]);
    slot->over = pair[1];
    put_over++;
  } else {
    close(slot->fd);
    taken_away++;
  }
  slot->state = done;
}

static int child_works(const char* name) {
  struct addrinfo* list;
  if (ask(name, &list)) return 0;
  for (const struct addrinfo* info = list; info; info = info->ai_next) {
    int fd = connect_first(info);
    if (fd >= 0) return has_address(name, fd) && echo_works(fd);
  }
  return 1;  // all dead at the moment
}

static void fork_once(const char* name) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(!child_works(name));
  }
  if (child < 0) return;
  forked++;
  int status;
  if (waitpid(child, &status, 0) != child || status) child_failed++;
}

static void* run(void* argument) {
  struct slot* slot = argument;
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
  for (int i = 0; i < thread_count; ++i) pthread_create(&threads[i], NULL, run, &slots[i]);
  for (int i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
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
