// A thread sleeps in a call on a socket that is still connecting: asleep CALL NAME PORT
//
// CALL: send, write, sendmsg, recv, read, by a second thread while the first is inside connect(); own-send: by the
// thread that has connected it, without blocking at first. The server at PORT sends back what it is sent.

#include "hardening.h"

static const char* call;
static int fd;

static int is(const char* what) { return !strcmp(call, what); }

static long do_call(void) {
  char byte = 'x';
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
  if (is("write")) return write(fd, &byte, 1);
  if (is("sendmsg")) return sendmsg(fd, &message, 0);
  if (is("recv")) return recv(fd, &byte, 1, 0);
  if (is("read")) return read(fd, &byte, 1);
  return send(fd, &byte, 1, 0);
}

static long done;
static int failure;

static void note_call(void) {
  done = do_call();
  failure = done < 0 ? errno : 0;
}

static void* in_thread(void* unused) {
  sleep_ms(50);
  note_call();
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  call = argv[1];
  struct addrinfo* list = look_up(argv[2], argv[3]);
  int own = is("own-send"), reads = is("recv") || is("read");
  pthread_t thread;
  fd = socket(list->ai_family, SOCK_STREAM | (own ? SOCK_NONBLOCK : 0), 0);
  pthread_create(&thread, NULL, own ? sleep_for_ever : in_thread, NULL);
  printf("connect %s\n", outcome(connect(fd, list->ai_addr, list->ai_addrlen)));
  if (own) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), note_call();
  if (reads) send(fd, "y", 1, MSG_NOSIGNAL);
  if (!own) pthread_join(thread, NULL);
  printf("%s %ld %d\n", call, done, failure);
  char byte = 0;
  if (!reads) printf("echo %ld\n", (long)recv(fd, &byte, 1, 0));
  printf("peer %s\n", peer_text(fd));
  return 0;
}
