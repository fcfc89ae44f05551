#include "racer/noted_registrations.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>

#include "racer/attempt.h"
#include "racer/pending.h"
#include "resolver/guarded_socket.h"
#include "shim/base/real_functions.h"

namespace happy {
namespace {

// A program waits for a socket in one set, seldom in two. What is beyond takes the place of the oldest.
constexpr std::size_t max_noted = 2 * max_races;

struct noted {
  int set;  // 0 with a cookie of 0: none
  int fd;
  std::uint64_t cookie;  // of the socket; its number may show another since
  std::uint64_t data;
  std::uint32_t events;
};

// Memory comes from the kernel when it is first needed, and stays. The engine's lock is around it.
struct note_table {
  noted* notes = nullptr;
  bool noting = false;
  std::size_t made = 0;  // ever
};
constinit note_table table;

std::size_t in_use() { return std::min(table.made, max_noted); }

noted* find(int set, int fd) {
  noted* const end = table.notes + in_use();
  noted* const n = std::find_if(table.notes, end, [&](const noted& x) {
    return x.cookie != 0 && x.set == set && x.fd == fd;
  });
  return n == end ? nullptr : n;
}

bool have_memory() {
  if (table.notes != nullptr) return true;
  void* memory = mmap(nullptr, max_noted * sizeof(noted), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  table.notes = static_cast<noted*>(memory);
  return true;
}

bool may_be_raced(int fd) {
  const int state = tcp_state(fd);
  return state == TCP_CLOSE || is_handshake(state);
}

}  // namespace

void doubt_proc(happy_pending& pending) {
  table.noting = have_memory();
  __atomic_store_n(&pending.notes_registrations, table.noting ? 1U : 0U, __ATOMIC_RELEASE);
}

void look_for_proc(happy_pending& pending) {
  struct stat folder;
  if (real->stat("/proc/self/fdinfo", &folder) != 0) return doubt_proc(pending);
  __atomic_store_n(&pending.notes_registrations, 0U, __ATOMIC_RELEASE);
  table.noting = false;
  table.made = 0;
}

void note_registration(int set, int operation, int fd, const epoll_event* event) {
  if (!table.noting) return;
  noted* known = find(set, fd);
  if (operation == EPOLL_CTL_DEL) {
    if (known != nullptr) known->cookie = 0;
    return;
  }
  if (!may_be_raced(fd)) return;
  if (known == nullptr) known = &table.notes[table.made++ % max_noted];
  *known = {.set = set,
            .fd = fd,
            .cookie = socket_cookie(fd),
            .data = event->data.u64,
            .events = event->events};
}

std::optional<epoll_entry> noted_registration(int set, int fd) {
  const noted* known = find(set, fd);
  if (known == nullptr || known->cookie != socket_cookie(fd)) return std::nullopt;
  return epoll_entry{
      .set = set, .fd = fd, .events = known->events, .data = known->data, .inode = 0};
}

}  // namespace happy
