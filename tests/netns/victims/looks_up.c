// Looks names up, one after the other, and shows what came and how long it took.
//
//   looks_up FAMILY NAME...       FAMILY as a number, with a "p" for AI_PASSIVE; a name "+N" is a pause of N ms, "!"
//                                 res_init()

#include "hardening.h"

#include <resolv.h>

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int i = 2; i < argc; ++i) {
    if (*argv[i] == '+') {
      sleep_ms(atoi(argv[i]));
      continue;
    }
    if (*argv[i] == '!') {
      res_init();
      continue;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_family = atoi(argv[1]),
                             .ai_flags = strchr(argv[1], 'p') ? AI_PASSIVE : 0},
                    *list = NULL;
    const double began = now_ms();
    const int code = getaddrinfo(argv[i], "7", &hints, &list);
    printf("code_%d %d\nms_%d %.1f\naddresses_%d ", i - 1, code, i - 1, now_ms() - began, i - 1);
    for (const struct addrinfo* info = list; info; info = info->ai_next)
      printf("%s%s", info == list ? "" : ",", address_text(info->ai_addr));
    puts("");
    if (list) freeaddrinfo(list);
  }
  return 0;
}
