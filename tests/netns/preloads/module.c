// A module that a program loads with dlopen(), and that does its connecting.

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int module_connect(const char* name, const char* port) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
  if (getaddrinfo(name, port, &hints, &list)) return -1;
  int connected = -1;
  for (struct addrinfo* info = list; info && connected < 0; info = info->ai_next) {
    int fd = socket(info->ai_family, info->ai_socktype, info->ai_protocol);
    if (connect(fd, info->ai_addr, info->ai_addrlen)) {
      close(fd);
    } else {
      connected = fd;
    }
  }
  freeaddrinfo(list);
  return connected;
}
