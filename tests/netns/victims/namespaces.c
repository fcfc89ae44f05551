// What the kernel allows only to a process with one thread, and what it does to one thread only, after a race.
//
//   namespaces WHAT [-t | -2] NAME PORT
//
// -t: the program had a second thread, which is gone. -2: it connects twice before.
// WHAT: user     unshare(CLONE_NEWUSER)
//       userns   setns() into another user namespace's mount namespace (needs one thread too)
//       mnt      unshare(CLONE_NEWNS), then unmounts nothing; setns() back
//       net      one thread unshare(CLONE_NEWNET)s in the middle of its own lookups: nothing may connect from there
//       setns    setns() into the network namespace of the servers: connects there by the same name
//       thread-net, thread-setns  one thread alone goes there, and connects at the same time as the other
//       setuid   setuid() while a thread is in mid-race: every thread changes
//       rawcaps  as capset, by syscall()
//       landlock, thread-landlock  TCP is forbidden to the process after a race; to one thread, beside one
//                that connects
//       capset   drops capabilities after a race: no thread is left that still has them

#include "hardening.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const char* what;
static struct addrinfo* list;

static int is(const char* other) { return !strcmp(what, other); }

static void* walk_in_thread(void* unused) {
  int fd = connect_in_turn(list);
  printf("thread %s\n", fd < 0 ? "not connected" : echo_works(fd) ? "echo" : "no echo");
  return unused;
}

static void* nothing(void* unused) { return unused; }

static void say(const char* call, int failed) {
  printf("%s %s\n", call, failed ? strerrorname_np(errno) : "ok");
}

// As linux/landlock.h has them since Linux 6.7: no TCP connect() is allowed any more, to any port.
static int forbid_connects(void) {
  struct {
    uint64_t files, connections;
  } rules = {0, 1 << 1};
  const int no_privilege_is_gained = 38;
  int set = syscall(444, &rules, sizeof rules, 0);
  if (set < 0 || prctl(no_privilege_is_gained, 1, 0, 0, 0)) return -1;
  int failed = syscall(446, set, 0);
  close(set);
  return failed;
}

static pthread_barrier_t both_are_ready;
static void* leave_alone(void* result) {
  if (is("thread-landlock")) {
    sleep_ms(100);  // the other one waits for its first address
    if (forbid_connects()) puts("landlock failed");
  } else if (is("thread-net")) {
    say("unshare", unshare(CLONE_NEWNET));
  } else {
    int servers = open("/run/netns/s", O_RDONLY | O_CLOEXEC);
    say("setns", setns(servers, CLONE_NEWNET));
    close(servers);
  }
  if (!is("thread-landlock")) pthread_barrier_wait(&both_are_ready);
  int fd = connect_in_turn(list);
  strcpy(result, fd < 0 ? strerrorname_np(errno) : echo_works(fd) ? "echo" : "no echo");
  return NULL;
}

static int two_in_two_networks(void) {
  pthread_t thread;
  char other[64];
  pthread_barrier_init(&both_are_ready, NULL, 2);
  pthread_create(&thread, NULL, leave_alone, other);
  if (!is("thread-landlock")) pthread_barrier_wait(&both_are_ready);
  int fd = connect_in_turn(list);
  printf("here %s\n", fd < 0 ? strerrorname_np(errno) : echo_works(fd) ? "echo" : "no echo");
  pthread_join(thread, NULL);
  printf("there %s\n", other);
  return 0;
}

// The distinct values of a field of /proc/self/task/*/status.
static void print_of_all_threads(const char* field) {
  char command[256];
  fflush(stdout);
  snprintf(command, sizeof command, "cat /proc/%d/task/*/status | grep '^%s:' | sort -u",
           (int)getpid(), field);
  if (system(command)) puts("no status");
}

extern int capset(struct __user_cap_header_struct* header,
                  const struct __user_cap_data_struct* data);

static void drop_capabilities(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {{0}};
  say("capset", is("capset") ? capset(&header, none) : (int)syscall(SYS_capset, &header, none));
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  what = argv[1];
  int option = argv[2][0] == '-';
  const char *name = argv[2 + option], *port = argv[3 + option];
  pthread_t thread;
  if (!strcmp(argv[2], "-t")) {
    pthread_create(&thread, NULL, nothing, NULL);
    pthread_join(thread, NULL);
  }
  list = look_up(name, port);
  if (!strncmp(what, "thread-", 7)) return two_in_two_networks();
  if (is("setuid")) {
    pthread_create(&thread, NULL, walk_in_thread, NULL);
    sleep_ms(400);
    double began = now_ms();
    say("setuid", setuid(65534));
    printf("setuid_ms %.1f\n", now_ms() - began);
    print_of_all_threads("Uid");
    pthread_join(thread, NULL);
    return 0;
  }
  if (!strcmp(argv[2], "-2")) close(connect_in_turn(list));
  int fd = connect_in_turn(list);
  printf("first %s\n", fd < 0 ? "not connected" : echo_works(fd) ? "echo" : "no echo");
  if (is("user")) say("unshare", unshare(CLONE_NEWUSER));
  if (is("mnt")) {
    int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    say("unshare", unshare(CLONE_NEWNS));
    say("setns", setns(own, CLONE_NEWNS));
  }
  if (is("userns")) say("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNS));
  if (is("capset") || is("rawcaps")) {
    drop_capabilities();
    print_of_all_threads("CapEff");
  }
  if (is("net") || is("landlock")) {
    if (is("net")) say("unshare", unshare(CLONE_NEWNET));
    if (is("landlock")) say("landlock", forbid_connects());
    fd = connect_in_turn(list);
    printf("second %s\n", fd < 0 ? strerrorname_np(errno) : "connected");
  }
  if (is("setns")) {
    int servers = open("/run/netns/s", O_RDONLY | O_CLOEXEC);
    say("setns", setns(servers, CLONE_NEWNET));
    close(servers);
    fd = connect_in_turn(list);
    printf("second %s\n", fd < 0 ? strerrorname_np(errno) : echo_works(fd) ? "echo" : "no echo");
  }
  return 0;
}
