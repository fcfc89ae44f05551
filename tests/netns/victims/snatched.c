// Another thread closes an fd within the first moments of connect() on it, and its number becomes another socket's at once.
//
//   snatched [-n] HOW COUNT SEED NAME PORT
//
// -n: a handler could always be running in the thread that connects, as in left.c.
// HOW: close  close(), then socket()
//      dup2   dup2() of that socket
//
// The moments are random, 25 to 45 us after the call. Nothing says which of both is first: a call ends as if nobody had
// closed anything, or with EBADF. Reports whether more than a few did not, and how many of the other sockets were touched.

#include "hardening.h"

#define EARLIEST_US 25
#define LATEST_US 45
#define MOST_PERCENT \
  10  // a thread may not have come to connect() by then: the other socket refuses

static const struct addrinfo* to;
static volatile int fd = -1, turn, done;
static volatile double began;
static int connected, closed;

static void note(int number) { (void)number; }

static void* connect_each(void* count) {
  for (int i = 1; i <= *(int*)count; ++i) {
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) < i) sleep_ms(0.05);
    began = now_ms();
    int failed = connect(fd, to->ai_addr, to->ai_addrlen);
    connected += !failed;
    closed += failed && errno == EBADF;
    __atomic_store_n(&done, i, __ATOMIC_RELEASE);
  }
  return NULL;
}

// Its family is one that the address is not of, its SO_SNDTIMEO one that nobody else has.
static const struct timeval own_timeout = {7, 780000};

static int stranger(void) {
  int other = socket(AF_UNIX, SOCK_STREAM, 0);
  setsockopt(other, SOL_SOCKET, SO_SNDTIMEO, &own_timeout, sizeof own_timeout);
  return other;
}

static int is_touched(int number, const struct socket_view* before) {
  struct socket_view now = view(number);
  return !views_equal(before, &now);
}

// The number shows the stranger.
static struct socket_view snatch(int by_dup2) {
  int number = fd;
  if (by_dup2) {
    int other = stranger();
    struct socket_view seen = view(other);
    dup2(other, number);
    close(other);
    return seen;
  }
  close(number);
  int other = stranger();
  if (other != number) puts("the number is not the lowest");
  return view(other);
}

int main(int argc, char** argv) {
  int no_handler = argc < 2 || strcmp(argv[1], "-n");
  argv += !no_handler;
  int by_dup2 = !strcmp(argv[1], "dup2"), count = atoi(argv[2]), touched = 0;
  uint64_t seed = strtoull(argv[3], NULL, 10);
  if (!no_handler) handle(SIGSEGV, note, SA_NODEFER);
  struct footprint before = footprint();
  struct addrinfo* list = look_up(argv[4], argv[5]);
  to = list;
  pthread_t thread;
  pthread_create(&thread, NULL, connect_each, &count);
  block_all_signals();
  for (int i = 1; i <= count; ++i) {
    fd = socket(to->ai_family, SOCK_STREAM, 0);
    began = 0;
    double after_ms = 1e-3 * (double)(EARLIEST_US + random_below(&seed, LATEST_US - EARLIEST_US));
    __atomic_store_n(&turn, i, __ATOMIC_RELEASE);
    while (began == 0 || now_ms() < began + after_ms) {
    }
    struct socket_view other = snatch(by_dup2);
    while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < i) sleep_ms(0.5);
    touched += is_touched(fd, &other);
    close(fd);
  }
  pthread_join(thread, NULL);
  freeaddrinfo(list);
  int odd = count - closed - connected;
  printf("at_all connected %d, closed %d, touched %d\n", connected, closed, touched);
  printf("odd_ones %s\n", odd * 100 > count * MOST_PERCENT ? "too many" : "few");
  printf("touched %d\n", touched);
  print_leftovers(before);
  return 0;
}
