// Threads that are cancelled at random moments.
//
//   cancelled [-n] WHERE COUNT AT_ONCE SEED NAME PORT
//
// -n: a handler could always be running in the threads, as in left.c.
// WHERE: connect      in connect() to the name's first address
//        getaddrinfo  in getaddrinfo()
//        either       in one after the other, until cancelled
//
// Reports how many were cancelled, how many ended late (300 ms after the cancellation), how many cleanup handlers ran, how
// many of these with signals blocked, and whether lookups and connects work afterwards. The name is looked up once before
// and once after.

#include "hardening.h"

#define LONGEST_MS 600
#define MAX_AT_ONCE 64
#define LATE_MS 300

static const char *where, *name, *port;
static struct addrinfo* list;
static int cleaned, cleaned_blocked;

static void ignore(int number) { (void)number; }

static void close_it(void* fd) {
  // AddressSanitizer takes the stack of cancelled calls for theirs still.
  static __thread sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  if (sigismember(&blocked, SIGUSR1)) __atomic_fetch_add(&cleaned_blocked, 1, __ATOMIC_RELAXED);
  close((int)(intptr_t)fd);
  __atomic_fetch_add(&cleaned, 1, __ATOMIC_RELAXED);
}

static void connect_and_close(void) {
  int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
  pthread_cleanup_push(close_it, (void*)(intptr_t)fd);
  connect(fd, list->ai_addr, list->ai_addrlen);
  pthread_cleanup_pop(1);
}

static void ask(void) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *answer;
  if (!getaddrinfo(name, port, &hints, &answer)) freeaddrinfo(answer);
}

static void* run(void* unused) {
  for (;;) {
    if (strcmp(where, "getaddrinfo")) connect_and_close();
    if (strcmp(where, "connect")) ask();
    pthread_testcancel();
  }
  return unused;
}

struct victim_thread {
  pthread_t thread;
  double cancel_ms;
};

static int by_moment(const void* a, const void* b) {
  double x = ((const struct victim_thread*)a)->cancel_ms,
         y = ((const struct victim_thread*)b)->cancel_ms;
  return (x > y) - (x < y);
}

static int cancelled, late;

static void one_round(int at_once, uint64_t* seed) {
  struct victim_thread all[MAX_AT_ONCE];
  for (int i = 0; i < at_once; ++i) {
    all[i].cancel_ms = now_ms() + (double)random_below(seed, LONGEST_MS);
    if (pthread_create(&all[i].thread, NULL, run, NULL)) perror("pthread_create");
  }
  qsort(all, (size_t)at_once, sizeof *all, by_moment);
  for (int i = 0; i < at_once; ++i) {
    if (now_ms() < all[i].cancel_ms) sleep_ms(all[i].cancel_ms - now_ms());
    double at = now_ms();
    pthread_cancel(all[i].thread);
    void* result = NULL;
    pthread_join(all[i].thread, &result);
    cancelled += result == PTHREAD_CANCELED;
    late += now_ms() - at > LATE_MS;
  }
}

int main(int argc, char** argv) {
  if (argc == 8 && !strcmp(argv[1], "-n")) {
    handle(SIGSEGV, ignore, SA_NODEFER);
    handle(SIGUSR2, ignore, SA_RESTART);
    --argc, ++argv;
  }
  if (argc != 7) return 2;
  where = argv[1];
  int count = atoi(argv[2]), at_once = atoi(argv[3]);
  uint64_t seed = strtoull(argv[4], NULL, 10);
  name = argv[5];
  port = argv[6];
  struct footprint before = footprint();
  if (strcmp(where, "getaddrinfo")) list = look_up(name, port);
  for (int done = 0; done < count; done += at_once) one_round(at_once, &seed);
  printf("cancelled %d\nlate %d\n", cancelled, late);
  printf("cleanups_blocked %d\n", cleaned_blocked);
  printf("cleanups_balance %d\n", strcmp(where, "getaddrinfo") ? cleaned >= count : cleaned == 0);
  if (strcmp(where, "getaddrinfo")) {
    list = look_up(name, port);
    int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
    struct timeval limit = {0, 700000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    printf("at_connect %s\n", outcome(connect(fd, list->ai_addr, list->ai_addrlen)));
    close(fd);
  }
  print_leftovers(before);
  return 0;
}
