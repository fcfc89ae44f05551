// Walks the addresses of a name as most programs do, a new socket for each, until one connects.
//
//   walk [-s SO_SNDTIMEO_MS] [-o ONLY_ADDRESS] NAME PORT
//
// With -o it connects to that one of the name's addresses only, as a program does that has checked it.
// Exit status 0: connected and echoed; 1: nothing connected.

#include "victim.h"

static int attempt(const struct addrinfo* info, long timeout_ms) {
  int fd = socket(info->ai_family, info->ai_socktype, info->ai_protocol);
  if (timeout_ms) {
    struct timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout)) perror("SO_SNDTIMEO");
  }
  int failed = connect(fd, info->ai_addr, info->ai_addrlen);
  printf("%s %s\n", address_text(info->ai_addr), failed ? strerrorname_np(errno) : "connected");
  if (!failed) return fd;
  close(fd);
  return -1;
}

int main(int argc, char** argv) {
  const char* only = NULL;
  long timeout_ms = 0;
  for (int letter; (letter = getopt(argc, argv, "s:o:")) != -1;) {
    if (letter == 's') timeout_ms = atol(optarg);
    if (letter == 'o') only = optarg;
  }
  struct addrinfo* list = look_up(argv[optind], argv[optind + 1]);
  for (const struct addrinfo* info = list; info; info = info->ai_next) {
    if (only && strcmp(only, address_text(info->ai_addr))) continue;
    int fd = attempt(info, timeout_ms);
    if (fd < 0) continue;
    printf("peer %s\n", peer_text(fd));
    return !echo_works(fd);
  }
  return 1;
}
