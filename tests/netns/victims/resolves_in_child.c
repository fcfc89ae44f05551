// A program that looks names up in a forked child, as lynx and old mail clients do, and connects in the parent.
//
//   resolves_in_child WHAT NAME PORT [ADDRESS]
//
// WHAT: plain     the child looks up and tells the parent the first address, which connects to it
//       wait      the same, but the parent makes /run/lab/ready-NAME and waits for go-NAME there
//       setuid    the child has other credentials when it looks up
//       setgid    ... another group
//       caps      ... fewer capabilities
//       rewrite   the child then writes ADDRESS wherever memory that it shares with the parent holds the first address;
//                 the parent connects to ADDRESS
//       rename    the child then writes ADDRESS, another name of the same length, wherever that memory holds the name
//       random    the child then fills that memory with random bytes
//       unmap     the child then unmaps it, and makes it unreadable

#include "hardening.h"

#include <linux/capability.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static const char* what;

static int is(const char* other) { return !strcmp(what, other); }

struct target {
  struct sockaddr_storage address;
  socklen_t length;
};

static void change_credentials(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {{0}};
  if (is("setuid") && setuid(65534)) perror("setuid");
  if (is("setgid") && setgid(65534)) perror("setgid");
  if (is("caps") && syscall(SYS_capset, &header, none)) perror("capset");
}

static void replace_all(char* memory, size_t size, const void* from, const void* to,
                        size_t length) {
  for (char* at = memory; (at = memmem(at, size - (size_t)(at - memory), from, length));
       at += length)
    memcpy(at, to, length);
}

static const void* address_bytes(const struct sockaddr_storage* address) {
  return address->ss_family == AF_INET6
             ? (const void*)&((const struct sockaddr_in6*)address)->sin6_addr
             : (const void*)&((const struct sockaddr_in*)address)->sin_addr;
}

static void parse_address(const char* text, struct target* target) {
  if (inet_pton(AF_INET6, text, &((struct sockaddr_in6*)&target->address)->sin6_addr) != 1)
    perror("address");
}

// Does to memory shared with the parent what a hostile child could do.
static void attack(const struct target* looked_up, const char* name, const char* argument) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512], permissions[8];
  uintptr_t begin, end;
  uint64_t seed = 42;
  struct target forged = *looked_up;
  if (is("rewrite")) parse_address(argument, &forged);
  while (fgets(line, sizeof line, maps)) {
    if (sscanf(line, "%lx-%lx %7s", &begin, &end, permissions) != 3 || permissions[3] != 's' ||
        permissions[1] != 'w')
      continue;
    char* memory = (char*)begin;
    if (is("rewrite"))
      replace_all(memory, end - begin, address_bytes(&looked_up->address),
                  address_bytes(&forged.address), 16);
    if (is("rename")) replace_all(memory, end - begin, name, argument, strlen(name));
    if (is("random")) {
      for (size_t i = 0; i + 8 <= end - begin; i += 8) {
        uint64_t value = random_after(&seed);
        memcpy(memory + i, &value, 8);
      }
    }
    if (is("unmap")) munmap(memory, end - begin);
  }
  fclose(maps);
}

static void in_child(int to_parent, const char* name, const char* port, const char* argument) {
  struct target target = {.length = 0};
  change_credentials();
  struct addrinfo* list = look_up(name, port);
  memcpy(&target.address, list->ai_addr, list->ai_addrlen);
  target.length = list->ai_addrlen;
  attack(&target, name, argument);
  if (write(to_parent, &target, sizeof target) != sizeof target) _exit(1);
  _exit(0);
}

static void wait_for_go(const char* name) {
  char path[512];
  snprintf(path, sizeof path, "/run/lab/ready-%s", name);
  close(open(path, O_CREAT | O_WRONLY, 0600));
  snprintf(path, sizeof path, "/run/lab/go-%s", name);
  while (access(path, F_OK)) sleep_ms(10);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  what = argv[1];
  const char *name = argv[2], *port = argv[3], *argument = argc > 4 ? argv[4] : "";
  struct footprint before = footprint();
  int channel[2], status;
  if (pipe(channel)) return 2;
  pid_t child = fork();
  if (!child) in_child(channel[1], name, port, argument);
  struct target target;
  if (read(channel[0], &target, sizeof target) != sizeof target) return 3;
  waitpid(child, &status, 0);
  close(channel[0]), close(channel[1]);
  if (is("rewrite")) parse_address(argument, &target);
  if (is("wait")) wait_for_go(name);
  int fd = socket(target.address.ss_family, SOCK_STREAM, 0);
  double began = now_ms();
  int failed = connect(fd, (struct sockaddr*)&target.address, target.length);
  printf("connect %s\nconnect_ms %.1f\n", outcome(failed), now_ms() - began);
  if (!failed) printf("peer %s\necho %d\n", peer_text(fd), echo_works(fd));
  close(fd);
  print_leftovers(before);
  return 0;
}
