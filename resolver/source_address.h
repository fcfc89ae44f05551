// Which local address the kernel would use towards a destination: the impure half of RFC 6724.
#pragma once

#include <cstdint>
#include <span>

#include "resolver/address_order.h"
#include "shim/base/unique_fd.h"

namespace happy {

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

// Sets source_prefix_length of IPv4 candidates from the interfaces, if rule 9 can need it: two or
// more of them have a source. Otherwise, and on any error, changes nothing.
//
// Context:  getifaddrs(), a netlink dump (glibc's getaddrinfo makes the same one).
void find_prefix_lengths(std::span<candidate> list);

// The destination is an address of this host: to those the kernel goes from the address itself.
bool is_own(const candidate& c);

}  // namespace happy
