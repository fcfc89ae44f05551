// A program that closes descriptors which are not its own, as daemons do, and uses the numbers for its own files.
//
//   closer WHEN HOW NAME PORT
//
// WHEN: before      looks up, closes everything, opens its own, connects
//       idle        a threaded program that has connected before, so that what ran the race is still there; then as before
//       lookup      a thread is in getaddrinfo() when everything is closed
//       race        a thread is in connect() when everything but its fd is closed
//       race-all    ... everything, its fd too
// HOW:  close_range closefrom close (number by number)
//
// Its own files are socketpairs, on every number up to OWN_HIGHEST, and nothing may ever arrive on them; they stay
// open for WATCH_MS. Afterwards it looks up and connects once more.

#include "hardening.h"

#include <linux/close_range.h>

#define OWN_HIGHEST 120
#define CLOSE_AFTER_MS 400
#define WATCH_MS 2500

static const char *when, *how;
static const char *name, *port;
static struct addrinfo* list;
static int fd = -1, failed, error;
static int lookup_result;

static int is(const char* what) { return !strcmp(when, what); }

static void close_from(int lowest) {
  if (!strcmp(how, "close_range")) close_range((unsigned)lowest, ~0U, 0);
  if (!strcmp(how, "closefrom")) closefrom(lowest);
  if (!strcmp(how, "close")) {
    for (int number = lowest; number < 1024; ++number) close(number);
  }
}

// Takes all free numbers up to the highest: ends of socketpairs.
static int take_numbers(int* taken) {
  int count = 0, pair[2];
  while (!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair)) {
    if (pair[0] > OWN_HIGHEST || pair[1] > OWN_HIGHEST) {
      close(pair[0]), close(pair[1]);
      return count;
    }
    taken[count++] = pair[0], taken[count++] = pair[1];
  }
  return count;
}

// What became of the program's own files: closed, or written to, or read from.
static void check_taken(const int* taken, int count) {
  int lost = 0, bytes = 0, dead = 0;
  for (int i = 0; i < count; ++i) {
    char byte;
    if (fcntl(taken[i], F_GETFD) < 0) ++lost;
    while (recv(taken[i], &byte, 1, MSG_DONTWAIT) > 0) ++bytes;
  }
  for (int i = 0; i < count; i += 2) {
    char byte;
    if (write(taken[i], "z", 1) != 1 || read(taken[i + 1], &byte, 1) != 1) ++dead;
  }
  printf("own_lost %d\nown_bytes_from_nowhere %d\nown_pairs_dead %d\n", lost, bytes, dead);
}

static void* work(void* unused) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *answer = NULL;
  if (is("lookup")) {
    lookup_result = getaddrinfo(name, port, &hints, &answer);
  } else {
    failed = connect(fd, list->ai_addr, list->ai_addrlen);
    error = errno;
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  when = argv[1], how = argv[2], name = argv[3], port = argv[4];
  int taken[1024], count = 0, lowest = 3;
  if (is("idle")) start_idle_thread();
  struct footprint before = footprint();
  pthread_t thread;
  if (!is("lookup")) list = look_up(name, port);
  if (is("idle")) close(connect_first(list));
  if (is("before") || is("idle")) {
    close_from(3);
    fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
    count = take_numbers(taken);
    work(NULL);
  } else {
    if (!is("lookup")) fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
    if (is("race")) lowest = fd + 1;
    pthread_create(&thread, NULL, work, NULL);
    sleep_ms(CLOSE_AFTER_MS);
    close_from(lowest);
    count = take_numbers(taken);
    pthread_join(thread, NULL);
  }
  printf("at_lookup %s\n", lookup_result ? gai_strerror(lookup_result) : "done");
  printf("at_connect %s\n", failed ? strerrorname_np(error) : "connected");
  if (!is("lookup") && !is("race-all")) printf("peer_is_tcp %d\n", view(fd).state >= 0);
  sleep_ms(WATCH_MS);
  check_taken(taken, count);
  if (!failed && !is("lookup") && !is("race-all")) printf("at_echo %d\n", echo_works(fd));

  for (int i = 0; i < count; ++i) close(taken[i]);
  if (fd >= 0 && !is("race-all")) close(fd);
  double began = now_ms();
  int connected = connect_in_turn(look_up(name, port));
  printf("afterwards %s\n", connected < 0 ? "failed" : echo_works(connected) ? "echo" : "no echo");
  printf("afterwards_ms %.1f\n", now_ms() - began);
  close(connected);
  print_leftovers(before);
  return 0;
}
