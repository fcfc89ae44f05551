// Programs in a seccomp sandbox.
//
//   sandbox WHEN BY ACTION RULES NAME PORT
//   sandbox outside - ACTION RULES COMMAND...
//   sandbox asks BY - - NAME PORT
//
// WHEN:   early     the program sandboxes itself, then looks up and connects
//         between   looks up, sandboxes itself, connects
//         late      looks up and connects, sandboxes itself, looks up and connects again
//         racing    a thread connects, the main thread sandboxes the process (TSYNC) 100 ms later
//         outside   the sandbox is there, COMMAND is executed in it
//         asks      only asks whether there are sandboxes, then looks up and connects
// BY:     prctl syscall wide (syscall, with more than the kernel looks at)
// ACTION: kill (the process) errno (EPERM) trap (SIGSYS, not handled)
// RULES:  thread    refuses what makes threads, eventfds, timers, epoll sets, socket pairs (apt's own sandbox does)
//         strict    allows only what the bare program still does; not with early or outside
//
// Prints what connected, or dies.

#include "hardening.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const int of_threads[] = {SYS_clone,        SYS_clone3,         SYS_eventfd,
                                 SYS_eventfd2,     SYS_timerfd_create, SYS_epoll_create1,
                                 SYS_socketpair,   SYS_epoll_create,   SYS_pidfd_open,
                                 SYS_memfd_create, SYS_io_uring_setup, SYS_signalfd4};
static const int strictly[] = {SYS_socket, SYS_connect,    SYS_write, SYS_read,
                               SYS_close,  SYS_exit_group, SYS_exit};

static uint32_t action_value(const char* action) {
  if (!strcmp(action, "kill")) return SECCOMP_RET_KILL_PROCESS;
  return !strcmp(action, "trap") ? SECCOMP_RET_TRAP : SECCOMP_RET_ERRNO | EPERM;
}

static size_t write_filter(struct sock_filter* program, const char* rules, uint32_t action) {
  int strict = !strcmp(rules, "strict");
  const int* calls = strict ? strictly : of_threads;
  size_t count =
             strict ? sizeof strictly / sizeof *strictly : sizeof of_threads / sizeof *of_threads,
         used = 0;
  program[used++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < count; ++i) {
    program[used++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
    program[used++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, strict ? SECCOMP_RET_ALLOW : action);
  }
  program[used++] =
      (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, strict ? action : SECCOMP_RET_ALLOW);
  return used;
}

static void enter(const char* by, const char* action, const char* rules, unsigned flags) {
  struct sock_filter program[64];
  struct sock_fprog filter = {(unsigned short)write_filter(program, rules, action_value(action)),
                              program};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long above =
      !strcmp(by, "wide") ? 1L << 32 : 0;  // what an int of the kernel's does not see
  long failed = strcmp(by, "prctl")
                    ? syscall(SYS_seccomp, above | SECCOMP_SET_MODE_FILTER, above | flags, &filter)
                    : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
  if (failed) perror("seccomp"), exit(4);
}

// As Firefox, Chromium and libseccomp do: without a filter, and with flags for a mode that has none.
static void ask(const char* by) {
  if (!strcmp(by, "prctl")) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) != -1 || errno != EFAULT) exit(4);
    return;
  }
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL) != -1) exit(4);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) != -1) exit(4);
}

// No call but those of a network program: written without stdio.
static void say(const char* text) {
  if (write(1, text, strlen(text)) < 0) _exit(5);
}

static int connect_all(const struct addrinfo* list) {
  for (const struct addrinfo* info = list; info; info = info->ai_next) {
    int fd = socket(info->ai_family, info->ai_socktype, info->ai_protocol);
    int failed = connect(fd, info->ai_addr, info->ai_addrlen);
    if (!failed) {
      say(echo_works(fd) ? "echo works\n" : "echo fails\n");
      close(fd);
      return 0;
    }
    close(fd);
  }
  say("nothing connected\n");
  return 1;
}

static const struct addrinfo* thread_list;
static void* connect_in_thread(void* unused) {
  connect_all(thread_list);
  return unused;
}

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const char *when = argv[1], *by = argv[2], *action = argv[3], *rules = argv[4];
  if (!strcmp(when, "outside")) {
    enter("prctl", action, rules, 0);
    execvp(argv[5], argv + 5);
    return 127;
  }
  if (!strcmp(when, "early")) enter(by, action, rules, 0);
  if (!strcmp(when, "asks")) ask(by);
  struct addrinfo* list = look_up(argv[5], argv[6]);
  if (!strcmp(when, "racing")) {
    pthread_t thread;
    thread_list = list;
    pthread_create(&thread, NULL, connect_in_thread, NULL);
    sleep_ms(100);
    enter("syscall", action, rules, SECCOMP_FILTER_FLAG_TSYNC);
    pthread_join(thread, NULL);
    _exit(0);
  }
  if (!strcmp(when, "between")) enter(by, action, rules, 0);
  if (!strcmp(when, "late")) {
    connect_all(list);
    enter(by, action, rules, 0);
    if (strcmp(rules, "strict")) list = look_up(argv[5], argv[6]);
  }
  _exit(connect_all(list));
}
