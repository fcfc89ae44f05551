#include "shim/translated.h"

#include "shim/base/guards.h"
#include "shim/process.h"
#include "shim/socket_cookie.h"

namespace happy {
namespace {

// 16 bytes each, in pages that are never touched where there is no NAT64. A client with more connections
// through one at a time than this sees IPv6 names of some.
constexpr std::uint32_t slot_count = 4096;

// Looked at from where the cookie points to; a longer way than this means a table as good as full.
constexpr std::uint32_t longest_way = 16;

struct slot {
  std::atomic<std::uint64_t> cookie;  // 0: free
  std::atomic<std::uint64_t> what;
};

constinit slot table[slot_count]{};
constinit std::atomic<std::uint32_t> victim{0};

slot& slot_at(std::uint64_t cookie, std::uint32_t step) {
  const std::uint64_t mixed = cookie * 0x9e3779b97f4a7c15U;
  return table[((mixed >> 32) + step) % slot_count];
}

std::uint64_t pack(std::uint32_t ipv4, std::uint32_t flags) {
  return std::uint64_t{flags} << 32 | ipv4;
}

void write(slot& s, std::uint64_t cookie, std::uint64_t what) {
  s.cookie.store(0, std::memory_order_release);
  s.what.store(what, std::memory_order_release);
  s.cookie.store(cookie, std::memory_order_release);
}

slot* find_slot(std::uint64_t cookie) {
  for (std::uint32_t step = 0; step < longest_way; ++step) {
    slot& s = slot_at(cookie, step);
    if (s.cookie.load(std::memory_order_acquire) == cookie) return &s;
  }
  return nullptr;
}

// Sockets with higher numbers than this are forgotten although they exist.
constexpr int highest_fd = 1 << 16;

constinit bool exists[slot_count]{};

// Forgets the sockets that no descriptor of this process leads to. Some 10 ms, once in some thousand sockets.
void forget_closed() {
  for (bool& e : exists) e = false;
  for (int fd = 0; fd < highest_fd; ++fd) {
    if (const std::uint64_t cookie = cookie_of(fd)) {
      if (const slot* s = find_slot(cookie)) exists[s - table] = true;
    }
  }
  for (std::uint32_t i = 0; i < slot_count; ++i) {
    if (!exists[i]) table[i].cookie.store(0, std::memory_order_release);
  }
}

// Where to put it; nullptr: no room.
slot* find_place(std::uint64_t cookie) {
  slot* place = find_slot(cookie);
  for (std::uint32_t step = 0; step < longest_way && place == nullptr; ++step) {
    slot& s = slot_at(cookie, step);
    if (s.cookie.load(std::memory_order_acquire) == 0) place = &s;
  }
  return place;
}

}  // namespace

void note_translated(std::uint64_t cookie, std::uint32_t ipv4, std::uint32_t flags) {
  if (cookie == 0) return;
  translated_count.fetch_add(1, std::memory_order_relaxed);
  if (flags != 0) {
    translated_otherwise.fetch_add(1, std::memory_order_relaxed);
    watch_connects();
  }
  if ((flags & HAPPY_TRANSLATED_DATAGRAM) != 0)
    translated_datagrams.fetch_add(1, std::memory_order_relaxed);
  slot* place = find_place(cookie);
  if (place == nullptr) {
    forget_closed();
    place = find_place(cookie);
  }
  if (place == nullptr)
    place = &slot_at(cookie, victim.fetch_add(1, std::memory_order_relaxed) % longest_way);
  write(*place, cookie, pack(ipv4, flags));
}

int find_translated(std::uint64_t cookie, std::uint32_t* ipv4, std::uint32_t* flags) {
  if (cookie == 0 || !any_translated()) return 0;
  const slot* s = find_slot(cookie);
  if (s == nullptr) return 0;
  const std::uint64_t what = s->what.load(std::memory_order_acquire);
  if (s->cookie.load(std::memory_order_acquire) != cookie) return 0;  // replaced meanwhile
  *ipv4 = static_cast<std::uint32_t>(what);
  *flags = static_cast<std::uint32_t>(what >> 32);
  return 1;
}

void forget_translated(int fd) {
  std::uint64_t cookie = cookie_of(fd);
  slot* s = cookie != 0 ? find_slot(cookie) : nullptr;
  if (s != nullptr) s->cookie.compare_exchange_strong(cookie, 0, std::memory_order_release);
}

bool is_translated(int fd, translated_socket& found) {
  if (!any_translated()) return false;
  const std::uint64_t cookie = cookie_of(fd);
  return find_translated(cookie, &found.ipv4, &found.flags) != 0;
}

}  // namespace happy
