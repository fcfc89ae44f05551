// A connect() that ends before its time, and the two seconds after it.
//
//   left [-t | -n] HOW AFTER_MS NAME PORT
//
// -t: the process has a second thread (which takes no signals).
// -n: that one connects, and a handler could always be running in it: faults have one with SA_NODEFER, as of a crash
//     reporter, and the thread has no signal stack.
// HOW: eintr         SIGALRM, its handler without SA_RESTART
//      restart       SIGALRM, its handler with SA_RESTART
//      mixed-eintr   as eintr; a handler with SA_RESTART is installed for SIGUSR1 too, and runs at half the time
//      mixed-restart as restart; a handler without SA_RESTART is installed for SIGUSR1, and does not run
//      once          as eintr; the handler is gone as it begins (SA_RESETHAND)
//      closing       SIGALRM, its handler with SA_RESTART closes the fd: the restarted call finds none
//      sndtimeo      SO_SNDTIMEO on the fd
//      sndtimeo-restart  the same, and SIGALRM with SA_RESTART at a third of the time (such a connect() is not restarted)
//      jump          SIGALRM, its handler leaves connect() by siglongjmp
//      jump-restart  the same, the handler has SA_RESTART
//      mixed-jump    as jump-restart; a handler without SA_RESTART is installed for SIGUSR1, and does not run
//      close         another thread closes the fd, and a file takes its number
//      pair          another thread closes the fd, and a socketpair takes its number, which it tries to disconnect
//      dup2          another thread puts a connected socket over the fd
//      shutdown      another thread shuts the socket down
//      disconnect    another thread disconnects it (AF_UNSPEC)
//      disconnect-dup  the same, by another number
//      twice         another thread connects it, too; there is an SO_SNDTIMEO of 3 s

#include "hardening.h"

#include <setjmp.h>

#define WATCH_MS 2000

static sigjmp_buf out_of_connect;
static volatile sig_atomic_t handled;
static pthread_t connecting;
static volatile int wrong_thread;
static int fd;

static void note(int number) {
  handled = handled + 1;
  if (!pthread_equal(pthread_self(), connecting)) wrong_thread = 1;
  (void)number;
}

static void close_it(int number) {
  note(number);
  close(fd);
}

static void jump(int number) {
  note(number);
  siglongjmp(out_of_connect, 1);
}

static const char* how;
static long after_ms;
static int taker = -1;  // what took the fd's number
static int taker_peer = -1;

static int is(const char* what) { return !strcmp(how, what); }
static int closes(void) { return is("close") || is("pair") || is("dup2"); }
static int joins_in(void) {
  return is("shutdown") || is("disconnect") || is("disconnect-dup") || is("twice");
}
static int second_error;       // of twice
static int other_number = -1;  // of disconnect-dup
static const struct sockaddr nothing = {.sa_family = AF_UNSPEC};

// Takes the number of the fd for something of the program's own.
static void* take_number(void* unused) {
  (void)unused;
  block_all_signals();
  sleep_ms(after_ms);
  int pair[2] = {-1, -1}, file = -1;
  if (is("close")) file = open("/run/lab", O_RDWR | O_TMPFILE, 0600);
  if (!is("close")) socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  if (is("dup2")) {
    dup2(pair[0], fd);
  } else {
    close(fd);
    fcntl(is("close") ? file : pair[0], F_DUPFD, fd);
    if (is("pair")) connect(fd, &nothing, sizeof nothing);
  }
  taker = fd;
  taker_peer = pair[1];
  return NULL;
}

static void* join_in(void* list) {
  const struct addrinfo* to = list;
  block_all_signals();
  sleep_ms(after_ms);
  if (is("shutdown"))
    shutdown(fd, SHUT_RDWR);
  else if (is("twice"))
    second_error = connect(fd, to->ai_addr, to->ai_addrlen) == 0 ? 0 : errno;
  else
    connect(is("disconnect") ? fd : other_number, &nothing, sizeof nothing);
  return NULL;
}

static void arrange(void) {
  struct timeval timeout = {after_ms / 1000, after_ms % 1000 * 1000};
  if (is("twice")) timeout = (struct timeval){3, 0};
  if (is("eintr") || is("mixed-eintr")) handle(SIGALRM, note, 0);
  if (is("restart") || is("mixed-restart") || is("sndtimeo-restart"))
    handle(SIGALRM, note, SA_RESTART);
  if (is("once")) handle(SIGALRM, note, (int)SA_RESETHAND);
  if (is("closing")) handle(SIGALRM, close_it, SA_RESTART);
  if (is("jump")) handle(SIGALRM, jump, 0);
  if (is("jump-restart") || is("mixed-jump")) handle(SIGALRM, jump, SA_RESTART);
  if (is("mixed-eintr")) handle(SIGUSR1, note, SA_RESTART), signal_after(SIGUSR1, after_ms / 2);
  if (is("mixed-restart") || is("mixed-jump")) handle(SIGUSR1, note, 0);
  if (is("sndtimeo") || is("sndtimeo-restart") || is("twice"))
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  if (is("sndtimeo-restart")) signal_after(SIGALRM, after_ms / 3);
  if (!is("sndtimeo") && !is("sndtimeo-restart") && !closes() && !joins_in())
    signal_after(SIGALRM, after_ms);
}

// Follows what is behind the fd; every change is a line.
static void watch(uint64_t cookie_before) {
  struct socket_view last = view(fd);
  print_view("first", &last, cookie_before);
  for (double end = now_ms() + WATCH_MS; now_ms() < end; sleep_ms(10)) {
    struct socket_view now = view(fd);
    if (!views_equal(&now, &last)) print_view("then", &now, cookie_before);
    last = now;
  }
}

// What connect() says of a socket that was left in mid-connect. One that has failed would start anew.
static void ask_again(const struct addrinfo* to) {
  if (view(fd).state == TCP_CLOSE) return;
  int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  printf("again %s\n", outcome(connect(fd, to->ai_addr, to->ai_addrlen)));
  fcntl(fd, F_SETFL, flags);
}

static void check_taker(void) {
  char byte;
  if (is("close")) {
    printf("bytes_on_file %ld\n", (long)lseek(taker, 0, SEEK_END));
  } else {
    printf("pair_works %d\n",
           write(taker, "z", 1) == 1 && read(taker_peer, &byte, 1) == 1 && byte == 'z');
    printf("bytes_on_pair %d\n",
           recv(taker_peer, &byte, 1, MSG_DONTWAIT) > 0 || recv(taker, &byte, 1, MSG_DONTWAIT) > 0);
  }
}

static void leave(char** argv) {
  how = argv[1];
  after_ms = atol(argv[2]);
  struct footprint before = footprint();
  struct addrinfo* list = look_up(argv[3], argv[4]);
  fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
  uint64_t cookie_before = cookie(fd);
  connecting = pthread_self();

  pthread_t other;
  if (is("disconnect-dup")) other_number = dup(fd);
  int has_other = closes() || joins_in();
  if (has_other) pthread_create(&other, NULL, closes() ? take_number : join_in, list);
  double began = now_ms();
  if (sigsetjmp(out_of_connect, 1)) {
    puts("connect left by siglongjmp");
  } else {
    arrange();
    int failed = connect(fd, list->ai_addr, list->ai_addrlen);
    printf("connect %s\n", outcome(failed));
  }
  printf("took_ms %.1f\nat_left %.1f\n", now_ms() - began, now_ms());
  if (has_other) pthread_join(other, NULL);
  if (is("twice")) printf("second %d\n", second_error);
  watch(closes() ? view(fd).cookie : cookie_before);
  if (!closes()) ask_again(list);
  printf("handled %d in %s\n", (int)handled, wrong_thread ? "another thread" : "the caller");
  if (closes()) check_taker();
  fflush(stdout);

  // The program goes on: another socket, another lookup.
  handle(SIGALRM, SIG_DFL, 0);
  close(fd);
  if (taker_peer >= 0) close(taker_peer);
  if (other_number >= 0) close(other_number);
  freeaddrinfo(list);
  list = look_up(argv[3], argv[4]);
  int next = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
  struct socket_view fresh = view(next);
  print_view("next", &fresh, fresh.cookie);
  close(next);
  (void)before;
}

static void* leave_in_thread(void* argv) {
  leave(argv);
  return NULL;
}

int main(int argc, char** argv) {
  const char* option = argc == 6 ? argv[1] : "";
  argv += *option != 0;
  if (!strcmp(option, "-t")) start_idle_thread();
  if (strcmp(option, "-n")) {
    leave(argv);
    return 0;
  }
  handle(SIGSEGV, note, SA_NODEFER);
  pthread_t thread;
  pthread_create(&thread, NULL, leave_in_thread, argv);
  block_all_signals();
  pthread_join(thread, NULL);
  return 0;
}
