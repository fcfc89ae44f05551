// How private an address is, so that no program is led into a more private place than it named.
#pragma once

#include <cstdint>
#include <string_view>

#include "shim/base/endpoint.h"

namespace happy {

// From the most private to the least; compares with <.
enum class privacy : std::uint8_t {
  own_host,    // loopback, unspecified, this host's own addresses
  link_local,  // 169.254.0.0/16, fe80::/10
  special,     // every other block that the IANA registries call not globally reachable
  global,
};

// "Globally Reachable" in the IANA IPv4 and IPv6 Special-Purpose Address Registries.
// An IPv4 address inside an IPv6 address is judged as itself, and where the IPv6 block is the more
// private of the two, as that block: ::ffff:0:0/96, ::/96, 64:ff9b::/96, 64:ff9b:1::/48, 2002::/16,
// 2001::/32. `own`: the address belongs to this host (see is_own()).
//
// Context:  pure, does not allocate, signal-safe.
privacy privacy_of(const address& a, bool own = false);

// The registry's name of the block that decided, "" where none did: for the trace.
std::string_view block_name(const address& a);

const char* to_text(privacy p);

}  // namespace happy
