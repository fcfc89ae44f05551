// Lists of struct addrinfo laid out as glibc lays them out, so that its freeaddrinfo() frees them.
#pragma once

#include <netdb.h>

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "shim/base/bounded_vector.h"
#include "shim/base/endpoint.h"

namespace happy {

// glibc gives at most stream, datagram and raw for a numeric service, and one per protocol that
// /etc/services knows otherwise: tcp, udp, dccp, udplite, sctp (twice).
inline constexpr std::size_t max_socket_kinds = 8;

struct socket_kind {
  int socktype = 0;
  int protocol = 0;
  std::uint16_t port = 0;  // host byte order
};

// What a list has beside its addresses.
struct addrinfo_template {
  int flags = 0;  // ai_flags of every entry; without hints glibc's AI_V4MAPPED | AI_ADDRCONFIG
  bounded_vector<socket_kind, max_socket_kinds> kinds;
};

// Asks the real getaddrinfo() for a numeric address with the program's service and hints: what it
// says about the service, hints and flags is its own judgement. The int is an EAI_* code.
//
// Context:  may read /etc/services; does not ask the DNS.
std::variant<addrinfo_template, int> make_template(const char* service, const addrinfo* hints);

// One entry per address and socket kind, from the program's malloc(). An endpoint's port, unless it is 0, is that of its
// TCP sockets. `canonical_name` goes to the first entry, nullptr: none. nullptr when memory is short or there is no
// address.
addrinfo* build_addrinfo_list(std::span<const endpoint> addresses, const addrinfo_template& form,
                              const char* canonical_name);

}  // namespace happy
