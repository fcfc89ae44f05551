// What the kernel says of this host's addresses.
#pragma once

#include <span>
#include <vector>

#include "shim/base/endpoint.h"

namespace happy {

struct own_address {
  address where;  // of a point-to-point link: the other end's, as glibc takes it
  std::uint8_t prefix_length = 0;
  bool deprecated = false;  // or not yet known to be unique
  bool home = false;        // a home address of Mobile IPv6
  unsigned interface = 0;   // its index
};

// More than any host has on purpose; the rest is left out.
inline constexpr std::size_t max_own_addresses = 4096;

// Empty on any error.
//
// Context:  one netlink dump and three system calls around it; waits for nothing but the kernel.
std::vector<own_address> own_addresses();

// Whether the interface is a tunnel for RFC 6724 s6, rule 7: the kinds that glibc counts as one. Not on any
// error.
bool is_tunnel(unsigned interface);

}  // namespace happy
