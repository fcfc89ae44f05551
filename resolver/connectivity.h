// Which families this host can use, asked the cheap way.
#pragma once

#include "shim/base/endpoint.h"

namespace happy {

struct configured_families {
  bool ipv4 = true;
  bool ipv6 = true;
};

// What AI_ADDRCONFIG means to glibc: some interface but loopback has an address of the family.
// On any error both count as configured.
//
// Context:  a netlink dump by getifaddrs(); allocates.
configured_families families_configured();

// ANSWER-7: IPv6 where the host has a route and a source address for it beyond the link, or where
// neither family has; else IPv4. Asks the kernel by connecting UDP sockets, which sends nothing.
//
// Context:  does not block.
family preferred_family();

}  // namespace happy
