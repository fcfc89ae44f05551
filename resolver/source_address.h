// Which local address the kernel would use towards a destination: the impure half of RFC 6724.
#pragma once

#include <cstdint>
#include <span>

#include "resolver/address_order.h"
#include "shim/base/unique_fd.h"

namespace happy {

// Whose word counts: what the kernel says now, as in glibc, or what it said a moment ago (source_memory.h).
enum class kernel_said : std::uint8_t { now, lately };

// Asks the kernel by connecting UDP sockets, which sends nothing. One socket per family serves all
// probes of one lookup; they close with the object.
//
// Context:  does not block; takes at most two file descriptors.
class source_probe {
 public:
  // Sets source and has_source. Any error means "no source", as it does in glibc. `port` is the
  // service's, or 0: routing rules can look at it.
  void probe(candidate& c, std::uint16_t port);

 private:
  bool connect_socket(unique_fd& fd, const socket_address& to);

  unique_fd sockets_[2];
};

// Sets what rules 3, 4, 7 and 9 look at, as glibc finds it: source_deprecated, source_home, source_tunnelled
// and source_prefix_length. Where the candidates cannot differ, and on any error, changes nothing.
//
// Context:  own_addresses(), a netlink dump (glibc's getaddrinfo makes the same one), where they can; two
//           more system calls per candidate if they go out through several interfaces.
void describe_sources(std::span<candidate> list, kernel_said said = kernel_said::now);

// The destination is an address of this host: to those the kernel goes from the address itself.
bool is_own(const candidate& c);

}  // namespace happy
