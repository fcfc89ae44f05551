// Which families this host can use, asked the cheap way.
#pragma once

#include <cstdint>

#include "resolver/address_order.h"
#include "shim/base/endpoint.h"
#include "shim/base/time.h"

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

// QUERY-1: some interface but loopback has an address of the family beyond the link. An address brings the
// route to its own network with it. On any error: yes.
//
// Context:  a netlink dump by getifaddrs(); allocates.
bool has_connectivity(family f);

inline constexpr duration preference_lifetime = std::chrono::seconds(1);

// ANSWER-7: IPv6 where the host has a route and a source address for it beyond the link, or where
// neither family has; else IPv4. Asks the kernel by connecting UDP sockets, which sends nothing, and
// says the same again for `preference_lifetime`: what hangs on it is a wait of 50 ms.
//
// Context:  any thread; does not block.
family preferred_family();

// Differs when the host goes out from another address: to another network. As old as preferred_family(),
// which finds it out on the way.
//
// Context:  any thread; does not block.
std::uint64_t network_fingerprint();

// The addresses from which this host would ask the world, asked now.
//
// Context:  any thread; signal-safe.
struct sources_outward {
  candidate ipv6;
  candidate ipv4;
};
sources_outward find_sources_outward();

// V6ONLY-1: this host can reach the world by IPv6 and has no default route for IPv4. Asked and remembered
// as preferred_family() is; where there is IPv4 that is one socket a second.
bool is_ipv6_only();

}  // namespace happy
