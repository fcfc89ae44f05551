// The program's sockets that are of another family than it believes: they connect by IPv6, through a NAT64,
// to an address that it gave as IPv4. What asks for names and families is answered accordingly (hooks_names.cc).
//
// A socket is known by its SO_COOKIE, which no other socket of this boot has: copies made by dup() and in
// forked children are the same socket, and what is closed is forgotten when room is needed. What exec() or
// SCM_RIGHTS hands on shows its true family there.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstdint>

#include "shim/abi.h"
#include "shim/base/endpoint.h"
#include "shim/pending.h"

namespace happy {

struct translated_socket {
  std::uint32_t ipv4 = 0;   // what the program calls it, in network order
  std::uint32_t flags = 0;  // HAPPY_TRANSLATED_*
};

// The address of its own that a translated socket shows: what a host with a 464XLAT calls itself, RFC 7335.
inline constexpr address own_ipv4 = make_ipv4(192, 0, 0, 1);

inline constinit std::atomic<std::uint32_t> translated_count{0};

// One load and one branch in a process that has none. Signal-safe.
inline bool any_translated() { return translated_count.load(std::memory_order_relaxed) != 0; }

// Of them, UDP sockets that were ever made.
inline constinit std::atomic<std::uint32_t> translated_datagrams{0};
inline bool any_translated_datagrams() {
  return translated_datagrams.load(std::memory_order_relaxed) != 0;
}

// Of them, sockets that are UDP or that the program takes for AF_INET6 ones: connect() does not do to them what it does
// to others.
inline constinit std::atomic<std::uint32_t> translated_otherwise{0};
inline bool any_translated_otherwise() {
  return translated_otherwise.load(std::memory_order_relaxed) != 0;
}

// Where the table is full, sockets that exist no more are forgotten, or else another one. Under the engine's lock.
void note_translated(std::uint64_t cookie, std::uint32_t ipv4, std::uint32_t flags);
// Lock-free.
int find_translated(std::uint64_t cookie, std::uint32_t* ipv4, std::uint32_t* flags);

// The socket behind `fd` is what it seems from here on. Lock-free.
void forget_translated(int fd);

// Whether it is possible that IPv6 leads where `fd` cannot get by IPv4: a connect() to `to` or a datagram has
// failed with `error`. Changes nothing.
bool may_be_synthesised(int error, int fd, const sockaddr* to, socklen_t length);

// Whether it is a SOCK_DGRAM socket. Signal-safe; errno survives.
bool is_datagram(int fd);

// Whether an address of the bridging pool was ever handed out: one load and one branch. Signal-safe.
inline bool any_bridged() {
  return __atomic_load_n(&pending_counts.bridged, __ATOMIC_ACQUIRE) != 0;
}
// Whether what is sent with `flags` would go to an address of that pool, which is not to leave the host. errno
// survives.
bool leads_to_pool(int fd, const sockaddr* to, socklen_t length, int flags);

// Whether IPv6 leads there; `call` says where to. `fd` is -1 to change nothing. Waits for DNS the first time.
bool find_way_by_ipv6(int fd, const sockaddr* to, socklen_t length, happy_synthesis& call);

// The socket behind `fd`, if it is one. errno survives.
bool is_translated(int fd, translated_socket& found);

}  // namespace happy
