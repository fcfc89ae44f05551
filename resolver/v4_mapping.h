// AI_V4MAPPED: IPv4 addresses for who takes IPv6 ones alone, as ::ffff:a.b.c.d.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "resolver/name_search.h"
#include "resolver/resolution.h"

namespace happy {

enum class v4_mapping : std::uint8_t {
  none,
  substitute,  // without an IPv6 address
  all,         // AI_ALL: beside IPv6 addresses
};

// `af`: what is left of AF_UNSPEC after AI_ADDRCONFIG.
v4_mapping mapping_of(int flags, int af);

// Whether a lookup that has addresses gives those that glibc would. That searches for AAAA through the whole list
// and then anew for A, so the two may be those of different names: this is left to it. So are AAAA records that
// are mapped themselves, which it drops.
bool mapping_agrees(const resolution& state, v4_mapping how, bool searched);

// The addresses in glibc's order, IPv4 ones mapped.
//
// Context:  asks the kernel for source addresses.
std::vector<address> mapped_order(const resolution& state);

// What glibc leaves in h_errno, whether there is an address or none: what the query that it sent last came to.
int mapped_resolver_error(const resolution& state, v4_mapping how);

// The EAI_* code of a lookup without addresses; nullopt where it takes glibc to know.
std::optional<int> mapped_error_code(const resolution& state, const name_search& search);

}  // namespace happy
