// Looks names up, one after the other, and shows what came and how long it took.
//
//   looks_up FAMILY NAME...       FAMILY as a number, with a "p" for AI_PASSIVE, an "h" for gethostbyname2(), an "r" for
//                                 gethostbyname2_r(), a "t" for both in eight threads at a time; a name "+N" is a
//                                 pause of N ms, "!" res_init(), "X=Y" sets a variable

#include "hardening.h"

#include <resolv.h>

// By the older functions: the number of addresses, the first of them, or h_errno.
static void look_up_host(const char* how, const char* name, int number) {
  static char buffer[4096];
  struct hostent space, *host = NULL;
  int error = 0;
  const double began = now_ms();
  if (strchr(how, 'r'))
    gethostbyname2_r(name, atoi(how), &space, buffer, sizeof buffer, &host, &error);
  else if (!(host = gethostbyname2(name, atoi(how))))
    error = h_errno;
  printf("ms_%d %.1f\ncode_%d %d\n", number, now_ms() - began, number, error);
  if (!host) return;
  char text[INET6_ADDRSTRLEN];
  printf("addresses_%d %s\nname_%d %s\n", number,
         inet_ntop(host->h_addrtype, host->h_addr_list[0], text, sizeof text), number,
         host->h_name);
}

#define THREADS 8
#define TURNS 50
static char** asked;
static int asked_count, asked_family, wrong;

// What gethostbyname2() gives is another thread's before one can look at it; it is only called.
static void* look_up_often(void* unused) {
  char buffer[4096], first[64][16] = {{0}};
  for (int turn = 0; turn < TURNS * asked_count; ++turn) {
    const int i = turn % asked_count;
    struct hostent space, *host = NULL;
    int error = 0;
    gethostbyname2(asked[i], asked_family);
    gethostbyname2_r(asked[i], asked_family, &space, buffer, sizeof buffer, &host, &error);
    if (!host || strcmp(host->h_name, asked[i]))
      __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    else if (turn < asked_count)
      memcpy(first[i], host->h_addr_list[0], (size_t)host->h_length);
    else if (memcmp(first[i], host->h_addr_list[0], (size_t)host->h_length))
      __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
  }
  return unused;
}

static int look_up_in_threads(char** names, int count, int family) {
  asked = names, asked_count = count, asked_family = family;
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; ++i) pthread_create(&thread[i], NULL, look_up_often, NULL);
  for (int i = 0; i < THREADS; ++i) pthread_join(thread[i], NULL);
  printf("wrong %d\n", wrong);
  return 0;
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (strchr(argv[1], 't')) return look_up_in_threads(argv + 2, argc - 2, atoi(argv[1]));
  for (int i = 2; i < argc; ++i) {
    if (*argv[i] == '+') {
      sleep_ms(atoi(argv[i]));
      continue;
    }
    if (*argv[i] == '!') {
      res_init();
      continue;
    }
    if (strchr(argv[i], '=')) {
      putenv(argv[i]);
      continue;
    }
    if (strpbrk(argv[1], "hr")) {
      look_up_host(argv[1], argv[i], i - 1);
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
