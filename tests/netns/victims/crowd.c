// COUNT connects at once, in one thread and one epoll set, or (threads) one in each of COUNT threads.
//
//   crowd epoll|threads COUNT NAME PORT NOFILE
//
// NOFILE: RLIMIT_NOFILE. Reports how many connected (and to what), failed, and were still connecting after PATIENCE_MS,
// the time at which the last one connected, how many fds and threads there were at most, and by how much the process had
// grown. Every connection carries a token of its own.

#include "hardening.h"

#include <sys/epoll.h>
#include <sys/resource.h>

#define MAX_COUNT 4096
#define PATIENCE_MS 4000
#define STACK_BYTES (64 * 1024)
#define LOOK_MS 10

static int fds[MAX_COUNT], outcomes[MAX_COUNT], count;
static double began_ms, last_ms;
static int fds_most, threads_most;
static long kib_most;
static const struct addrinfo* to;
enum outcome { pending, connected, failed };

static long resident_kib(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void look(void) {
  int open = open_fds(), tasks = threads();
  long kib = resident_kib();
  if (open > fds_most) fds_most = open;
  if (tasks > threads_most) threads_most = tasks;
  if (kib > kib_most) kib_most = kib;
}

static void settle(int i, int error) {
  outcomes[i] = error ? failed : connected;
  if (!error) last_ms = now_ms() - began_ms;
}

static void connect_by_epoll(void) {
  int set = epoll_create1(EPOLL_CLOEXEC), left = 0;
  for (int i = 0; i < count; ++i) {
    fds[i] = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct epoll_event event = {.events = EPOLLOUT, .data.u32 = (uint32_t)i};
    if (fds[i] < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &event)) {
      settle(i, errno);
    } else if (connect(fds[i], to->ai_addr, to->ai_addrlen) && errno != EINPROGRESS) {
      settle(i, errno);
    } else {
      ++left;
    }
  }
  printf("at_started_ms %.0f\n", now_ms() - began_ms);
  double looked_ms = 0;
  while (left > 0 && now_ms() < began_ms + PATIENCE_MS) {
    struct epoll_event events[64];
    int ready = epoll_wait(set, events, 64, LOOK_MS);
    for (int e = 0; e < ready; ++e) {
      int i = (int)events[e].data.u32;
      epoll_ctl(set, EPOLL_CTL_DEL, fds[i], NULL);
      settle(i, option(fds[i], SOL_SOCKET, SO_ERROR));
      --left;
    }
    if (now_ms() < looked_ms + 5 * LOOK_MS) continue;
    looked_ms = now_ms();
    look();
  }
  close(set);
}

static void* connect_in_thread(void* argument) {
  int i = (int)(intptr_t)argument;
  fds[i] = socket(to->ai_family, SOCK_STREAM, 0);
  settle(i, connect(fds[i], to->ai_addr, to->ai_addrlen) ? errno : 0);
  return NULL;
}

static void connect_by_threads(void) {
  static pthread_t all[MAX_COUNT];
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, STACK_BYTES);
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&all[i], &small, connect_in_thread, (void*)(intptr_t)i)) exit(4);
  }
  for (int left = 1; left > 0 && now_ms() < began_ms + PATIENCE_MS;) {
    look();
    left = 0;
    for (int i = 0; i < count; ++i) left += ((volatile int*)outcomes)[i] == pending;
    sleep_ms(5 * LOOK_MS);
  }
}

// Each of them says its number and hears it back.
static int echoed(void) {
  int right = 0, back;
  for (int i = 0; i < count; ++i) {
    if (outcomes[i] == connected) send(fds[i], &i, sizeof i, MSG_NOSIGNAL);
  }
  for (int i = 0; i < count; ++i) {
    if (outcomes[i] != connected) continue;
    fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) & ~O_NONBLOCK);
    right += recv(fds[i], &back, sizeof back, MSG_WAITALL) == sizeof back && back == i;
  }
  return right;
}

int main(int argc, char** argv) {
  if (argc != 6 || atoi(argv[2]) > MAX_COUNT) return 2;
  count = atoi(argv[2]);
  struct rlimit limit = {(rlim_t)atol(argv[5]), (rlim_t)atol(argv[5])};
  if (setrlimit(RLIMIT_NOFILE, &limit)) perror("RLIMIT_NOFILE");
  to = look_up(argv[3], argv[4]);
  long kib_before = resident_kib();
  struct footprint before = footprint();
  began_ms = now_ms();
  if (!strcmp(argv[1], "threads")) {
    connect_by_threads();
  } else {
    connect_by_epoll();
  }
  int of[3] = {0, 0, 0}, replaced = 0;
  for (int i = 0; i < count; ++i) ++of[outcomes[i]];
  for (int i = 0; i < count; ++i) {
    if (outcomes[i] != connected) continue;
    char named[NI_MAXHOST];
    strcpy(named, address_text(to->ai_addr));
    replaced += strcmp(peer_text(fds[i]), named) != 0;
  }
  printf("connected %d\nelsewhere %d\nfailed %d\npending %d\nlast_ms %.0f\n", of[connected],
         replaced, of[failed], of[pending], last_ms);
  printf("at_fds_most %d\nat_threads_most %d\nat_kib %ld\n", fds_most, threads_most,
         kib_most - kib_before);
  printf("echoed %d\n", echoed());
  if (of[pending] && !strcmp(argv[1], "threads")) _exit(0);  // they are in connect()
  for (int i = 0; i < count; ++i) close(fds[i]);
  print_leftovers(before);
  return 0;
}
