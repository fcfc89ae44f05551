#include "resolver/address_order.h"

#include <bit>

namespace happy {
namespace {

// RFC 6724 s2.1, longest prefix first.
constexpr policy_row rfc6724_rows[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, 50, 0},  // ::1
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 35, 4},         // ::ffff:0:0
    {{}, 96, 1, 3},                                                  // ::, IPv4-compatible
    {{0x20, 0x01}, 32, 5, 5},                                        // Teredo
    {{0x20, 0x02}, 16, 30, 2},                                       // 6to4
    {{0x3f, 0xfe}, 16, 1, 12},                                       // 6bone
    {{0xfe, 0xc0}, 10, 1, 11},                                       // site-local
    {{0xfc}, 7, 3, 13},                                              // ULA
    {{}, 0, 40, 1},                                                  // ::
};

// glibc has two tables; this is their product. It knows RFC 3484's precedences: a ULA is a global
// address to it (40) and goes before IPv4 (10), which RFC 6724 turned round (3 and 35).
constexpr policy_row glibc_rows[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, 50, 0},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 10, 4},
    {{}, 96, 20, 3},
    {{0x20, 0x01}, 32, 40, 7},
    {{0x20, 0x02}, 16, 30, 2},
    {{0xfe, 0xc0}, 10, 40, 5},
    {{0xfc}, 7, 40, 6},
    {{}, 0, 40, 1},
};

using bytes16 = std::array<std::uint8_t, 16>;

bytes16 as_ipv6(const address& a) {
  if (a.family == family::ipv6) return a.bytes;
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a.bytes[0], a.bytes[1], a.bytes[2], a.bytes[3]};
}

int common_prefix_length(const std::uint8_t* a, const std::uint8_t* b, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    if (a[i] != b[i]) return 8 * i + std::countl_zero(static_cast<std::uint8_t>(a[i] ^ b[i]));
  }
  return 8 * bytes;
}

const policy_row& row_of(const address& a, policy_table policy) {
  const bytes16 bytes = as_ipv6(a);
  for (const policy_row& row : policy) {
    if (common_prefix_length(bytes.data(), row.prefix.data(), 16) >= row.prefix_length) return row;
  }
  return policy.back();
}

// RFC 6724 s3.1 and s3.2: interface-local 1, link-local 2, site-local 5, global 14.
int scope_of(const address& a) {
  const auto& b = a.bytes;
  if (a.family == family::ipv4) return b[0] == 127 || (b[0] == 169 && b[1] == 254) ? 2 : 14;
  if (b[0] == 0xff) return b[1] & 0x0f;
  if (b[0] == 0xfe && (b[1] & 0xc0) == 0x80) return 2;
  if (b[0] == 0xfe && (b[1] & 0xc0) == 0xc0) return 5;
  constexpr bytes16 loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return b == loopback ? 2 : 14;
}

// Rule 9's CommonPrefixLen(Source, Destination), as glibc reads it: for IPv6 over all 128 bits (the
// RFC stops at the length of the source's prefix), for IPv4 only inside the source's own subnet,
// because longest match means nothing between IPv4 networks.
int matching_bits(const candidate& c) {
  const int bytes = c.destination.family == family::ipv4 ? 4 : 16;
  const int bits = common_prefix_length(c.destination.bytes.data(), c.source.bytes.data(), bytes);
  if (bytes == 4 && bits < c.source_prefix_length) return 0;
  return bits;
}

// `a` is the better one if it alone has the property.
int prefer(bool a, bool b) { return static_cast<int>(b) - static_cast<int>(a); }

}  // namespace

policy_table rfc6724_policy() { return rfc6724_rows; }
policy_table glibc_policy() { return glibc_rows; }

// Left out, for they need what only netlink knows: rule 3 (deprecated source addresses), 4 (home
// addresses) and 7 (native transport).
int compare(const candidate& a, const candidate& b, policy_table policy) {
  // Rule 1: Avoid unusable destinations.
  if (a.has_source != b.has_source) return prefer(a.has_source, b.has_source);

  const policy_row& policy_a = row_of(a.destination, policy);
  const policy_row& policy_b = row_of(b.destination, policy);
  const int scope_a = scope_of(a.destination);
  const int scope_b = scope_of(b.destination);

  if (a.has_source) {
    // Rule 2: Prefer matching scope.
    const int by_scope = prefer(scope_a == scope_of(a.source), scope_b == scope_of(b.source));
    if (by_scope != 0) return by_scope;

    // Rule 5: Prefer matching label.
    const int by_label = prefer(policy_a.label == row_of(a.source, policy).label,
                                policy_b.label == row_of(b.source, policy).label);
    if (by_label != 0) return by_label;
  }

  // Rule 6: Prefer higher precedence.
  if (policy_a.precedence != policy_b.precedence) return policy_b.precedence - policy_a.precedence;

  // Rule 8: Prefer smaller scope.
  if (scope_a != scope_b) return scope_a - scope_b;

  // Rule 9: Use longest matching prefix.
  if (a.has_source && a.destination.family == b.destination.family) {
    return matching_bits(b) - matching_bits(a);
  }

  // Rule 10: Otherwise, leave the order unchanged.
  return 0;
}

// By insertion: rule 9 speaks of one family only, so "before" need not be transitive over a mixed
// list, and std::stable_sort has undefined behaviour then.
void sort_by_preference(std::span<candidate> list, policy_table policy) {
  for (std::size_t i = 1; i < list.size(); ++i) {
    const candidate moving = list[i];
    std::size_t at = i;
    for (; at > 0 && compare(moving, list[at - 1], policy) < 0; --at) list[at] = list[at - 1];
    list[at] = moving;
  }
}

}  // namespace happy
