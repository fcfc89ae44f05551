// Asks for each name that comes in on stdin, a line each, and shows its addresses in the order that getaddrinfo() gives.

#include "victim.h"

static void show(const char* name) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
  int code = getaddrinfo(name, "80", &hints, &list);
  printf("%d", code);
  for (struct addrinfo* info = list; !code && info; info = info->ai_next)
    printf(" %s", address_text(info->ai_addr));
  puts("");
  fflush(stdout);
  if (!code) freeaddrinfo(list);
}

int main(void) {
  char line[256];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    show(line);
  }
  return 0;
}
