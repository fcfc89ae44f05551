// Asks the nameservers through libc's resolver itself, and shows all that came.
//
//   queries QUESTION...
//
// QUESTION: FUNCTION:NAME:TYPE:ROOM, the function being query, search, nquery or nsearch, or name:ADDRESS, host:ADDRESS
// for getnameinfo() and gethostbyaddr(), or "init" for res_init(). One line for each: its number, then the size, errno
// where that is negative, h_errno, and the reply but for its identifier; then a line "ms_N" with the time.

#include "hardening.h"

#include <arpa/nameser.h>
#include <resolv.h>

static struct __res_state state;

static void ask(const char* function, const char* name, int type, int room) {
  static unsigned char answer[65536];
  memset(answer, 0xee, sizeof answer);
  errno = 0;
  h_errno = 99;
  int size = -2;
  if (!strcmp(function, "query")) size = res_query(name, C_IN, type, answer, room);
  if (!strcmp(function, "search")) size = res_search(name, C_IN, type, answer, room);
  if (!strcmp(function, "nquery")) size = res_nquery(&state, name, C_IN, type, answer, room);
  if (!strcmp(function, "nsearch")) size = res_nsearch(&state, name, C_IN, type, answer, room);
  const int error = errno;
  printf(" %d %d %d ", size, size < 0 ? error : 0, h_errno);
  if (function[0] == 'n') printf("%d ", state.res_h_errno);
  for (int i = 2; i < size && i < room; ++i) printf("%02x", answer[i]);
}

static void ask_back(const char* function, const char* address) {
  struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *info;
  if (getaddrinfo(address, NULL, &hints, &info)) exit(2);
  char name[NI_MAXHOST] = "-";
  if (*function == 'n') {
    printf(" %d",
           getnameinfo(info->ai_addr, info->ai_addrlen, name, sizeof name, NULL, 0, NI_NAMEREQD));
  } else {
    const struct hostent* host =
        gethostbyaddr(&((struct sockaddr_in*)info->ai_addr)->sin_addr, 4, AF_INET);
    if (host) snprintf(name, sizeof name, "%s", host->h_name);
    printf(" %d", host ? 0 : h_errno);
  }
  printf(" %s", name);
  freeaddrinfo(info);
}

int main(int argc, char** argv) {
  res_ninit(&state);
  for (int i = 1; i < argc; ++i) {
    const char* function = strtok(argv[i], ":");
    const char* name = strtok(NULL, ":");
    const char* type = strtok(NULL, ":");
    const char* room = strtok(NULL, ":");
    printf("%d %s", i, function);
    const double began = now_ms();
    if (!name)
      printf(" %d", res_init());
    else if (type)
      ask(function, name, atoi(type), room ? atoi(room) : 4096);
    else
      ask_back(function, name);
    printf("\nms_%d %.1f\n", i, now_ms() - began);
  }
  return 0;
}
