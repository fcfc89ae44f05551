// IPv4 addresses inside IPv6 addresses, as a NAT64 understands them: RFC 6052, pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "shim/base/endpoint.h"
#include "shim/base/nat64_prefix.h"

namespace happy {

// 64:ff9b::/96
inline constexpr nat64_prefix well_known_prefix = {{0, 0x64, 0xff, 0x9b}, 96};

// The first `length` bits of `a`; nullopt if there is no such prefix: another length, multicast, a
// link-local, mapped or loopback address, or a "u" octet (bits 64 to 71) that is not zero.
std::optional<nat64_prefix> make_prefix(const address& a, int length);

// "2001:db8:64::/96". Bits beyond the length are an error, as a mistyped length is the likeliest reason.
std::optional<nat64_prefix> parse_prefix(std::string_view text);

// `ipv4` behind the prefix, with the "u" octet and the suffix zero.
// Spec:     RFC 6052 s2.2, s2.3; V6ONLY-6
address synthesise(const nat64_prefix& prefix, const address& ipv4);

// The IPv4 address in `a`, if `a` is what synthesise() makes of one.
// Spec:     NAT64-1
std::optional<address> embedded_ipv4(const nat64_prefix& prefix, const address& a);

// The octets of `a` where an address behind a prefix of that length stands, whatever is around them.
address octets_behind(std::uint8_t length, const address& a);

// Whether a packet for `ipv4` may be sent to a translator at all: not what is scoped to a host or a link
// (V6ONLY-2), is no unicast address or reserved for the protocol's own use; and behind the well-known
// prefix only what is globally reachable (RFC 6052 s3.1).
bool may_synthesise(const nat64_prefix& prefix, const address& ipv4);

// The longest is 45 characters, "/96" and NUL.
struct prefix_text {
  char chars[INET6_ADDRSTRLEN + 4];
};
prefix_text to_text(const nat64_prefix& prefix);

}  // namespace happy
