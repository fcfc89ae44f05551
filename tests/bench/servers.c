// servers ADDRESS4 ADDRESS6 NAMESERVER: answers every A query with ADDRESS4, every AAAA query with ADDRESS6, on
// NAMESERVER port 53, and accepts and closes connections to port 80. Prints "ready".
//
// In C and in one thread, so that what is measured is the client.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DNS_PORT = 53, HTTP_PORT = 80, HEADER = 12, TYPE_A = 1, TYPE_AAAA = 28 };

static unsigned char ipv4[4], ipv6[16];

// The reply in place; its length, or 0 for what is no query. One question, as every stub resolver asks.
static size_t reply(unsigned char* packet, size_t length, size_t room) {
  size_t at = HEADER;
  while (at < length && packet[at] != 0) at += packet[at] + 1u;
  const size_t question_end = at + 5;
  if (question_end > length) return 0;
  const int type = packet[at + 1] << 8 | packet[at + 2];
  const size_t size = type == TYPE_A ? sizeof ipv4 : type == TYPE_AAAA ? sizeof ipv6 : 0;
  if (question_end + 12 + size > room) return 0;
  packet[2] = 0x81;  // a response, recursion desired ...
  packet[3] = 0x80;  // ... and available
  memset(packet + 6, 0, 6);
  if (size == 0) return question_end;
  packet[7] = 1;
  const unsigned char record[] = {0xc0, HEADER, 0, (unsigned char)type, 0, 1, 0, 0,
                                  0,    60,     0, (unsigned char)size};
  memcpy(packet + question_end, record, sizeof record);
  memcpy(packet + question_end + sizeof record, type == TYPE_A ? ipv4 : ipv6, size);
  return question_end + sizeof record + size;
}

static int bound(int type, const struct sockaddr* to, socklen_t length) {
  const int on = 1;
  const int fd = socket(to->sa_family, type, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, to, length) != 0) perror("bind");
  return fd;
}

int main(int words, char** word) {
  struct sockaddr_in dns = {.sin_family = AF_INET, .sin_port = htons(DNS_PORT)};
  struct sockaddr_in6 http = {.sin6_family = AF_INET6, .sin6_port = htons(HTTP_PORT)};
  if (words != 4 || inet_pton(AF_INET, word[1], ipv4) != 1 ||
      inet_pton(AF_INET6, word[2], ipv6) != 1 || inet_pton(AF_INET, word[3], &dns.sin_addr) != 1)
    return 2;
  struct pollfd fds[] = {{bound(SOCK_DGRAM, (struct sockaddr*)&dns, sizeof dns), POLLIN, 0},
                         {bound(SOCK_STREAM, (struct sockaddr*)&http, sizeof http), POLLIN, 0}};
  listen(fds[1].fd, 4096);
  puts("ready");
  fflush(stdout);
  while (poll(fds, 2, -1) > 0) {
    if (fds[0].revents != 0) {
      unsigned char packet[1024];
      struct sockaddr_storage from;
      socklen_t from_length = sizeof from;
      const ssize_t length =
          recvfrom(fds[0].fd, packet, sizeof packet, 0, (struct sockaddr*)&from, &from_length);
      const size_t size = length > HEADER ? reply(packet, (size_t)length, sizeof packet) : 0;
      if (size > 0) sendto(fds[0].fd, packet, size, 0, (struct sockaddr*)&from, from_length);
    }
    if (fds[1].revents != 0) close(accept(fds[1].fd, NULL, NULL));
  }
  return 1;
}
