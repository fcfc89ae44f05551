// What is loaded into a process by a lookup and a connect.
//
//   loads WHAT ARGUMENT NAME PORT
//
// WHAT: plain       nothing special
//       pause       says "started" in the file ARGUMENT and waits until ARGUMENT.go exists, then looks up
//       chroot      chroot(ARGUMENT), then looks up
//       chroot-late looks up, chroot(ARGUMENT), then looks up again
//       dlopen      the module ARGUMENT looks up and connects
//       late        dlopen()s the library ARGUMENT, then looks up and connects
//       dlclose     the same, and dlclose()s it in between
//
// Reports what connected, AT_SECURE, what of libhappy is mapped, what the loader knows by no name of its own, and threads
// and fds.

#include "hardening.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

static int is(const char* what, const char* other) { return !strcmp(what, other); }

static int walk(const char* name, const char* port) {
  struct addrinfo* list = look_up(name, port);
  int fd = connect_in_turn(list);
  freeaddrinfo(list);
  return fd;
}

static int connect_by_module(const char* path, const char* name, const char* port) {
  void* module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!module) return puts(dlerror()), -1;
  int (*call)(const char*, const char*) =
      (int (*)(const char*, const char*))dlsym(module, "module_connect");
  return call(name, port);
}

static void wait_for(const char* path) {
  char go[512];
  close(open(path, O_CREAT | O_WRONLY, 0666));
  snprintf(go, sizeof go, "%s.go", path);
  while (access(go, F_OK)) sleep_ms(10);
}

static void print_maps(FILE* maps) {
  char line[512];
  int engine = 0, shim = 0;
  while (maps && fgets(line, sizeof line, maps)) {
    engine += strstr(line, "libhappy-engine") != NULL;
    shim += strstr(line, "libhappy.so") != NULL;
  }
  printf("at_engine_mapped %d\nat_shim_mapped %d\n", engine > 0, shim > 0);
}

// Who prints a stack opens the files that the loader names: these would be what else has the number by then.
static int print_numbered(struct dl_phdr_info* library, size_t size, void* unused) {
  (void)size, (void)unused;
  if (!strncmp(library->dlpi_name, "/proc/", 6)) printf("numbered %s\n", library->dlpi_name);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const char *what = argv[1], *argument = argv[2], *name = argv[3], *port = argv[4];
  FILE* maps = fopen("/proc/self/maps", "re");
  struct footprint before = footprint();
  int fd = -1;
  void* library = NULL;
  if (is(what, "pause")) wait_for(argument);
  if (is(what, "chroot-late")) fd = walk(name, port), close(fd);
  if (is(what, "chroot") || is(what, "chroot-late")) {
    if (chroot(argument) || chdir("/")) perror("chroot");
  }
  if (is(what, "late") || is(what, "dlclose")) {
    library = dlopen(argument, RTLD_NOW | RTLD_GLOBAL);
    printf("dlopen %s\n", library ? "ok" : dlerror());
  }
  if (is(what, "dlclose")) dlclose(library);
  fd = is(what, "dlopen") ? connect_by_module(argument, name, port) : walk(name, port);
  printf("connected %s\n", fd < 0 ? "no" : echo_works(fd) ? "echo" : "no echo");
  printf("secure %lu\n", getauxval(AT_SECURE));
  close(fd);
  print_maps(maps);
  dl_iterate_phdr(print_numbered, NULL);
  int rooted = is(what, "chroot") || is(what, "chroot-late");
  if (!rooted || !access("/proc/self/fd", F_OK)) print_leftovers(before);
  return 0;
}
