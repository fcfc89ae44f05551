// The program's sockets that are of another family than it believes: they connect by IPv6, through a NAT64,
// to an address that it gave as IPv4. What asks for names and families is answered accordingly (hooks_names.cc).
//
// A socket is known by its SO_COOKIE, which no other socket of this boot has: copies made by dup() and in
// forked children are the same socket, and what is closed need not be forgotten. What exec() or
// SCM_RIGHTS hands on shows its true family there.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstdint>

namespace happy {

struct translated_socket {
  std::uint32_t ipv4 = 0;   // what the program calls it, in network order
  std::uint32_t flags = 0;  // HAPPY_TRANSLATED_*
};

inline constinit std::atomic<std::uint32_t> translated_count{0};

// One load and one branch in a process that has none. Signal-safe.
inline bool any_translated() { return translated_count.load(std::memory_order_relaxed) != 0; }

// Lock-free. Where the table is full, another socket is forgotten.
void note_translated(std::uint64_t cookie, std::uint32_t ipv4, std::uint32_t flags);
int find_translated(std::uint64_t cookie, std::uint32_t* ipv4, std::uint32_t* flags);

// The socket behind `fd`, if it is one. errno survives.
bool is_translated(int fd, translated_socket& found);

}  // namespace happy
