// The order in which a client tries addresses: RFC 6724 section 6, as a pure function.
#pragma once

#include <cstdint>
#include <span>

#include "shim/base/endpoint.h"
#include "shim/base/time.h"

namespace happy {

// Values of candidate::service_priority that no record can have: in SVCB and SRV it has 16 bits.
inline constexpr std::uint32_t no_service_priority = 0x10000;     // no record: the last group
inline constexpr std::uint32_t outdated_hint_priority = 0x10001;  // kept by the user's wish

// A destination, what the DNS said of its service, and what the kernel said about reaching it (see
// source_address.h).
struct candidate {
  address destination;
  address source{};         // Source(D) of the RFC; meaningful if has_source
  bool has_source = false;  // false: no route, no address, no socket
  // Network mask of an IPv4 source, for rule 9 alone. 32 is what glibc takes when it does not know.
  std::uint8_t source_prefix_length = 32;

  // Of the service record (SVCB, HTTPS, SRV) that named it, if one did.
  std::uint16_t port = 0;    // 0: the port that the program names
  std::uint16_t weight = 0;  // SRV only: a higher one first (XMPP-5)
  bool in_turn = false;      // SRV: not before the groups with lower numbers are exhausted (XMPP-2)
  std::uint32_t service_priority = no_service_priority;  // lower ones first: GROUP-2, GROUP-3
  // Records of equal priority, shuffled: each has a rank of its own, lower ones first. What has no record
  // has rank 0, and so have all SRV records: their weights speak (XEP-0495).
  std::uint16_t service_rank = 0;
  // Of the NAT64 prefix that it lies inside: the IPv4 address behind it is what it counts as. 0: none.
  std::uint8_t translation_length = 0;
  bool hinted = false;  // known from an address hint only, not yet from the target's own records

  // What only netlink and /proc know; false where nobody asked.
  bool source_deprecated = false;  // rule 3
  bool source_home = false;        // rule 4: a home address of Mobile IPv6
  bool source_tunnelled = false;   // rule 7: the source's interface is a tunnel

  // What is remembered of it on this network.
  duration rtt{0};           // expected; 0: unknown
  duration rtt_variance{0};  // 0: unknown
  duration rtt_age{0};       // since it was measured last
  bool used = false;         // a connection to it has succeeded before
  bool demoted = false;      // it failed lately, and is not due for another try
};

bool holds(std::span<const candidate> list, const address& a);
// The same address at the same port.
bool holds(std::span<const candidate> list, const candidate& like);

// A row of one of the tables of RFC 6724: what belongs to the addresses inside a prefix. IPv4 addresses
// are looked up as ::ffff:a.b.c.d.
struct policy_row {
  std::array<std::uint8_t, 16> prefix;
  std::uint8_t prefix_length;
  std::int32_t value;
};

// Each longest prefix first, ending with a row for every address.
struct policy_table {
  std::span<const policy_row> labels;       // s2.1
  std::span<const policy_row> precedences;  // s2.1
  std::span<const policy_row> ipv4_scopes;  // s3.2
  // The update of RFC 6724 for known-local ULAs: a destination in the /48 of the ULA that this host would
  // send from goes before global IPv6.
  bool known_local_ula = false;
};

// The default table of RFC 6724 s2.1.
policy_table rfc6724_policy();

// What glibc 2.36 has compiled in: RFC 3484's precedences, with labels for ULA, site-local and Teredo.
policy_table glibc_policy();

// By RFC 6724 s6 and the rules that hev3 and XEP-0495 add to it. Negative: `a` before `b`; positive:
// after; 0: rule 10, keep their order.
int compare(const candidate& a, const candidate& b, const policy_table& policy);

// By service (GROUP-2, GROUP-3), and inside each by compare(). Stable; n log n comparisons.
//
// Context:  allocates beyond a hundred candidates.
// Spec:     hev3 Grouping By Service Priority, hev3 Sorting Destination Endpoints Within Groups
void sort_by_preference(std::span<candidate> list, const policy_table& policy = glibc_policy());

// Of one service, or of none: what sort_by_preference() keeps together.
bool same_group(const candidate& a, const candidate& b);

// As what it is sorted and grouped: of the family IPv4 also behind a NAT64.
// Spec:     NAT64-1
family counted_family(const candidate& c);

}  // namespace happy
