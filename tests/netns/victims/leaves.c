// A socket that is still connecting goes to another program: leaves HOW NAME PORT
//
// HOW: one of the functions of exec(), failed-exec (it goes nowhere and stays), sendmsg, sendmmsg (to another process; the
// sender closes its own, unless it is sendmsg-kept or sendmmsg-kept), syscall-execve, syscall-sendmsg, vfork (a child has it until its own exec()), exec-cloexec (it
// does not go along). Who has it then tells how it went.

#include "hardening.h"

#include <sys/syscall.h>
#include <sys/un.h>

static const char* how;

static int is(const char* what) { return !strcmp(how, what); }

static int tell(int fd) {
  struct pollfd p = {fd, POLLOUT, 0};
  int n = poll(&p, 1, 3000);
  if (fcntl(fd, F_GETFD) < 0) return printf("no socket\n"), 0;
  printf("poll %d %x\n", n, (unsigned)p.revents);
  printf("so_error %d\n", option(fd, SOL_SOCKET, SO_ERROR));
  printf("peer %s\n", peer_text(fd));
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  printf("echo %s\n", echo_works(fd) ? "works" : "fails");
  return 0;
}

static void go(int fd) {
  char number[16], *self = "/proc/self/exe";
  extern char** environ;
  snprintf(number, sizeof number, "%d", fd);
  char* words[] = {"leaves", number, NULL};
  if (is("execv")) execv(self, words);
  if (is("execve")) execve(self, words, environ);
  if (is("execvp")) execvp(self, words);
  if (is("execvpe")) execvpe(self, words, environ);
  if (is("execl")) execl(self, "leaves", number, (char*)NULL);
  if (is("execlp")) execlp(self, "leaves", number, (char*)NULL);
  if (is("execle")) execle(self, "leaves", number, (char*)NULL, environ);
  if (is("fexecve")) fexecve(open(self, O_RDONLY | O_CLOEXEC), words, environ);
  if (is("execveat")) execveat(AT_FDCWD, self, words, environ, 0);
  if (is("syscall-execve")) syscall(SYS_execve, self, words, environ);
  if (is("failed-exec")) execl("/nowhere", "nothing", (char*)NULL);
  if (is("exec-cloexec")) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    execv(self, words);
  }
}

static void hand_to(int channel, int fd) {
  union {
    char room[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
  } control = {0};
  char byte = 'x';
  struct iovec data = {&byte, 1};
  struct mmsghdr message = {.msg_hdr = {.msg_iov = &data,
                                        .msg_iovlen = 1,
                                        .msg_control = &control,
                                        .msg_controllen = sizeof control}};
  struct cmsghdr* part = CMSG_FIRSTHDR(&message.msg_hdr);
  part->cmsg_level = SOL_SOCKET, part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(part), &fd, sizeof fd);
  long sent = !strncmp(how, "sendmm", 6) ? sendmmsg(channel, &message, 1, 0)
              : is("syscall-sendmsg")    ? syscall(SYS_sendmsg, channel, &message.msg_hdr, 0)
                                         : sendmsg(channel, &message.msg_hdr, 0);
  if (sent < 0) perror("sendmsg");
}

static int take_from(int channel) {
  char room[CMSG_SPACE(sizeof(int))], byte;
  struct iovec data = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  int fd = -1;
  if (dup(0) < 0) return 1;  // it gets another number here
  if (recvmsg(channel, &message, 0) == 1)
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return tell(fd);
}

static void exec_in_vfork_child(void) {
  pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", (char*)NULL);
    _exit(1);
  }
  waitpid(child, NULL, 0);
}

int main(int argc, char** argv) {
  if (argc == 2) return tell(atoi(argv[1]));
  if (argc != 4) return 2;
  how = argv[1];
  int channel[2];
  socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel);
  pid_t other = strstr(how, "send") ? fork() : -1;
  if (other == 0) return take_from(channel[1]);
  struct addrinfo* list = look_up(argv[2], argv[3]);
  int fd = socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
  printf("connect %s\n", outcome(connect(fd, list->ai_addr, list->ai_addrlen)));
  if (other < 0) go(fd);
  if (is("vfork")) exec_in_vfork_child();
  if (other < 0) return tell(fd);
  hand_to(channel[0], fd);
  struct pollfd kept = {fd, POLLOUT, 0};
  if (strstr(how, "kept"))
    poll(&kept, 1, 3000);
  else
    close(fd);
  waitpid(other, NULL, 0);
  return 0;
}
