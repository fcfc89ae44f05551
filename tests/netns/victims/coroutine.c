// Lookups and connects of a coroutine on a small stack: coroutine WHERE KIB WHAT NAME PORT
//
// WHERE: guarded    a page that nobody may touch lies below the stack
//        heap       other data of the program's lies there, in the heap
//        mapped     or in a mapping
// WHAT:  lookup     looks up
//        connect    connects to what was looked up before, on a large stack

#define _GNU_SOURCE
#include "hardening.h"

#include <malloc.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { room = 512 * 1024, page = 4096, mark = 0xa5 };

static const char *what, *name, *port;
static struct addrinfo* list;
static ucontext_t outside, inside;
static int result;

static void act(void) {
  if (!strcmp(what, "connect")) {
    int fd = socket(list->ai_family, list->ai_socktype, list->ai_protocol);
    result = connect(fd, list->ai_addr, list->ai_addrlen) ? errno : 0;
  } else {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    result = getaddrinfo(name, port, &hints, &list);
  }
}

static unsigned char* make_room(const char* where) {
  mallopt(M_MMAP_THRESHOLD, 2 * room);
  if (!strcmp(where, "heap")) return malloc(room);
  return mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  size_t size = strtoul(argv[2], NULL, 10) * 1024;
  what = argv[3], name = argv[4], port = argv[5];
  if (!strcmp(what, "connect")) list = look_up(name, port);
  unsigned char* all = make_room(argv[1]);
  unsigned char* stack = all + room - size;
  memset(all, mark, room);
  if (!strcmp(argv[1], "guarded")) mprotect(stack - page, page, PROT_NONE);
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = size;
  inside.uc_link = &outside;
  makecontext(&inside, act, 0);
  swapcontext(&outside, &inside);
  if (!strcmp(argv[1], "guarded")) mprotect(stack - page, page, PROT_READ);
  size_t intact = 0;
  while (all + intact < stack && all[intact] == mark) ++intact;
  printf("result %d\nbelow %s\n", result, all + intact == stack ? "intact" : "overwritten");
  return 0;
}
