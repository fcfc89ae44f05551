// fork() and exec in the middle of a race.
//
//   forks WHAT NAME PORT [COUNT]
//
// WHAT: other     a thread connects, the main thread forks at five moments; each child looks up and connects by itself
//       same      the connecting thread forks, in a signal handler; child and parent both come back from connect()
//       same-restart  the same, the handler with SA_RESTART
//       exec      a thread connects, the main thread becomes another program, which lists its fds and threads
//       exec-child    as other, but the child becomes that program
//       vfork     a thread connects; vfork children connect and close, as a shell's do, and _exit
//       spawn     a thread connects; posix_spawn of that program
//       reexec    looks up, connects, closes, and becomes itself again, COUNT times; then tells fds and threads
//       daemon    looks up, daemon(), connects; the result goes into /run/lab/daemon-PORT-NAME

#include "hardening.h"

#include <spawn.h>
#include <sys/mman.h>

extern char** environ;

static const char *what, *name, *port;
static struct addrinfo* list;
static char* self;

static int is(const char* other) { return !strcmp(what, other); }

static int walk_and_echo(void) {
  int fd = connect_in_turn(list);
  if (fd < 0) return 1;
  int works = echo_works(fd);
  close(fd);
  return !works;
}

static int walked = -1;
static void* walk_in_thread(void* unused) {
  walked = walk_and_echo();
  return unused;
}

// Everything a child has that it should not have is in its exit status.
static int judge_child(const char* expected_fds) {
  if (strcmp(expected_fds, fd_numbers())) return 10;
  if (threads() != 1) return 11;
  list = look_up(name, port);
  if (walk_and_echo()) return 12;
  for (double end = now_ms() + SETTLE_MS; now_ms() < end; sleep_ms(20)) {
    if (!strcmp(expected_fds, fd_numbers()) && threads() == 1) return 0;
  }
  return 13;
}

static int status_of(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) < 0) perror("waitpid");
  return status;
}

static void print_status(int status) {
  if (WIFEXITED(status)) printf("child exit %d\n", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) printf("child signal %d\n", WTERMSIG(status));
}

static void print_child(pid_t pid) { print_status(status_of(pid)); }

static void fork_from_other(void) {
  static const int moments[] = {50, 200, 300, 450, 600};
  pid_t children[5];
  char expected[4096];
  // The connecting thread has one socket of the program's open.
  for (int i = 0; i < 5; ++i) {
    sleep_ms(moments[i] - (i ? moments[i - 1] : 0));
    int next = dup(0);
    close(next);
    snprintf(expected, sizeof expected, walked < 0 ? "0,1,2,3," : "0,1,2,");
    fflush(stdout);
    children[i] = fork();
    if (children[i] == 0)
      _exit(is("exec-child") ? execl(self, self, "list", "", "", NULL) : judge_child(expected));
  }
  // The last of them may still be printing.
  int statuses[5];
  for (int i = 0; i < 5; ++i) statuses[i] = status_of(children[i]);
  for (int i = 0; i < 5; ++i) print_status(statuses[i]);
}

static volatile pid_t forked = -1;
static int* child_error;  // in memory that both share; -1: none yet
static void fork_in_handler(int number) {
  (void)number;
  forked = fork();
}

static int fork_from_same(void) {
  child_error =
      mmap(NULL, sizeof *child_error, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  handle(SIGALRM, fork_in_handler, is("same-restart") ? SA_RESTART : 0);
  signal_after(SIGALRM, 400);
  int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
  uint64_t before = cookie(fd);
  int failed = connect(fd, list->ai_addr, list->ai_addrlen);
  int error = errno;
  if (forked == 0) {
    *child_error = failed ? error : 0;
    printf("child socket %s\n", view(fd).cookie == before ? "kept" : "replaced");
    printf("child threads %d, fds %s\n", threads(), fd_numbers());
    fflush(stdout);
    _exit(0);
  }
  print_child(forked);
  // Where both wait for the same socket, one of them hears why it failed, the other finds it closed.
  if (!failed) error = 0;
  int first = error < *child_error ? error : *child_error;
  printf("connects %s, %s\n", strerrorname_np(first),
         strerrorname_np(error + *child_error - first));
  struct socket_view v = view(fd);
  printf("parent sndtimeo %ld.%06ld\n", (long)v.send_timeout.tv_sec, (long)v.send_timeout.tv_usec);
  close(fd);
  return 0;
}

static void vfork_children(void) {
  for (int i = 0; i < 8; ++i) {
    sleep_ms(70);
    pid_t pid = vfork();
    if (pid == 0) {
      int fd = socket(list->ai_family, list->ai_socktype | SOCK_NONBLOCK, list->ai_protocol);
      int failed = connect(fd, list->ai_addr, list->ai_addrlen);
      int right = failed && errno == EINPROGRESS;
      close(fd);
      close_range(3, ~0U, 0);
      _exit(!right);
    }
    print_child(pid);
  }
}

static void spawn_children(void) {
  for (int i = 0; i < 4; ++i) {
    sleep_ms(150);
    char* arguments[] = {self, "list", "", "", NULL};
    pid_t pid;
    fflush(stdout);
    if (posix_spawn(&pid, self, NULL, NULL, arguments, environ)) perror("posix_spawn");
    print_child(pid);
  }
}

static int become_daemon(void) {
  char path[512];
  snprintf(path, sizeof path, "/run/lab/daemon-%s", name);
  if (daemon(0, 0)) return 1;
  int failed = walk_and_echo();
  FILE* file = fopen(path, "w");
  fprintf(file, "echo %d, threads %d, fds %s\n", !failed, threads(), fd_numbers());
  fclose(file);
  return 0;
}

static int become_itself(int count) {
  char next[16];
  snprintf(next, sizeof next, "%d", count - 1);
  if (walk_and_echo()) return 1;
  if (count) return execl(self, self, what, name, port, next, NULL);
  printf("fds %s threads %d\n", fd_numbers(), threads());
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  what = argv[1], name = argv[2], port = argv[3], self = argv[0];
  if (is("list")) {
    printf("program fds %s threads %d\n", fd_numbers(), threads());
    return 0;
  }
  struct footprint before = footprint();
  list = look_up(name, port);
  if (is("reexec")) return become_itself(argc == 5 ? atoi(argv[4]) : 0);
  if (is("daemon")) return become_daemon();
  if (is("same") || is("same-restart")) return fork_from_same();
  pthread_t thread;
  pthread_create(&thread, NULL, walk_in_thread, NULL);
  if (is("exec")) {
    sleep_ms(400);
    execl(self, self, "list", "", "", NULL);
  }
  if (is("other") || is("exec-child")) fork_from_other();
  if (is("vfork")) vfork_children();
  if (is("spawn")) spawn_children();
  pthread_join(thread, NULL);
  printf("parent %d\n", walked);
  print_leftovers(before);
  return 0;
}
