// Lookups in a thread with the smallest stack that there is: small_stack KIB NAME

#include "hardening.h"

static const char* name;

static void* in_thread(void* unused) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
  static char buffer[8192];
  static struct hostent space;
  struct hostent* answer = NULL;
  int error = 0;
  printf("getaddrinfo %d\n", getaddrinfo(name, "7", &hints, &list));
  printf("gethostbyname %d\n", gethostbyname(name) != NULL);
  printf("gethostbyname_r %d\n",
         gethostbyname_r(name, &space, buffer, sizeof buffer, &answer, &error));
  return unused;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  name = argv[2];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, strtoul(argv[1], NULL, 10) * 1024)) return 2;
  for (int i = 0; i < 2; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, in_thread, NULL)) return 2;
    pthread_join(thread, NULL);
  }
  return 0;
}
