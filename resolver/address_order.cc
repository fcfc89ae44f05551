#include "resolver/address_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <vector>

#include "resolver/translation.h"

namespace happy {
namespace {

constexpr std::uint8_t mapped_length = 96;

// RFC 6724 s2.1.
constexpr policy_row rfc6724_labels[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, 0},      // ::1
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, mapped_length, 4},  // ::ffff:0:0
    {{}, 96, 3},                                                     // ::, IPv4-compatible
    {{0x20, 0x01}, 32, 5},                                           // Teredo
    {{0x20, 0x02}, 16, 2},                                           // 6to4
    {{0x3f, 0xfe}, 16, 12},                                          // 6bone
    {{0xfe, 0xc0}, 10, 11},                                          // site-local
    {{0xfc}, 7, 13},                                                 // ULA
    {{}, 0, 1},                                                      // ::
};

constexpr policy_row rfc6724_precedences[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, 50},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, mapped_length, 35},
    {{}, 96, 1},
    {{0x20, 0x01}, 32, 5},
    {{0x20, 0x02}, 16, 30},
    {{0x3f, 0xfe}, 16, 1},
    {{0xfe, 0xc0}, 10, 1},
    {{0xfc}, 7, 3},
    {{}, 0, 40},
};

constexpr policy_row glibc_labels[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, 0},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, mapped_length, 4},
    {{}, 96, 3},
    {{0x20, 0x01}, 32, 7},
    {{0x20, 0x02}, 16, 2},
    {{0xfe, 0xc0}, 10, 5},
    {{0xfc}, 7, 6},
    {{}, 0, 1},
};

// glibc knows RFC 3484's: a ULA is a global address to it (40) and goes before IPv4 (10), which RFC 6724
// turned round (3 and 35).
constexpr policy_row glibc_precedences[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, 50},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, mapped_length, 10},
    {{}, 96, 20},
    {{0x20, 0x02}, 16, 30},
    {{}, 0, 40},
};

// RFC 6724 s3.2.
constexpr policy_row ipv4_scope_rows[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 169, 254}, mapped_length + 16, 2},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127}, mapped_length + 8, 2},
    {{}, 0, 14},
};

// draft-ietf-6man-rfc6724-update-15 s5.3, item 6.
constexpr std::int32_t known_local_precedence = 45;
constexpr std::int32_t known_local_label = 14;

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

std::int32_t value_of(const address& a, std::span<const policy_row> rows) {
  const bytes16 bytes = as_ipv6(a);
  for (const policy_row& row : rows) {
    if (common_prefix_length(bytes.data(), row.prefix.data(), 16) >= row.prefix_length)
      return row.value;
  }
  return rows.back().value;
}

// RFC 6724 s3.1: interface-local 1, link-local 2, site-local 5, global 14.
std::int32_t scope_of(const address& a, const policy_table& policy) {
  const auto& b = a.bytes;
  if (a.family == family::ipv4) return value_of(a, policy.ipv4_scopes);
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
  if (c.translation_length != 0) return 0;  // its source is not IPv4
  const int bytes = c.destination.family == family::ipv4 ? 4 : 16;
  const int bits = common_prefix_length(c.destination.bytes.data(), c.source.bytes.data(), bytes);
  if (bytes == 4 && bits < c.source_prefix_length) return 0;
  return bits;
}

// Of fc00::/7 the update speaks of the half that is in use.
bool is_ula(const address& a) { return a.family == family::ipv6 && a.bytes[0] == 0xfd; }

bool is_known_local(const candidate& c) {
  return c.has_source && is_ula(c.destination) && is_ula(c.source) &&
         common_prefix_length(c.destination.bytes.data(), c.source.bytes.data(), 16) >= 48;
}

// What compare() looks at, worked out once for each candidate.
struct ranked {
  const candidate* of;
  std::int32_t precedence;
  std::int32_t scope;
  bool scope_matches;
  bool label_matches;
  int matching_bits;
};

ranked rank(const candidate& c, const policy_table& policy) {
  const address where = c.translation_length != 0
                            ? octets_behind(c.translation_length, c.destination)
                            : c.destination;
  ranked r{.of = &c,
           .precedence = value_of(where, policy.precedences),
           .scope = scope_of(where, policy),
           .scope_matches = false,
           .label_matches = false,
           .matching_bits = 0};
  std::int32_t label = value_of(where, policy.labels);
  std::int32_t source_label = c.has_source ? value_of(c.source, policy.labels) : -1;
  if (policy.known_local_ula) {
    if (is_known_local(c)) {
      r.precedence = known_local_precedence;
      label = known_local_label;
    }
    if (is_ula(c.source)) source_label = known_local_label;
  }
  if (!c.has_source) return r;
  r.scope_matches = r.scope == scope_of(c.source, policy);
  r.label_matches = label == source_label;
  r.matching_bits = matching_bits(c);
  return r;
}

// `a` is the better one if it alone has the property.
int prefer(bool a, bool b) { return static_cast<int>(b) - static_cast<int>(a); }

// What only a source can tell; both have one.
int compare_sources(const ranked& a, const ranked& b) {
  // Rule 2: Prefer matching scope.
  if (const int by = prefer(a.scope_matches, b.scope_matches)) return by;
  // Rule 3: Avoid deprecated addresses.
  if (const int by = prefer(!a.of->source_deprecated, !b.of->source_deprecated)) return by;
  // Rule 4: Prefer home addresses.
  if (const int by = prefer(a.of->source_home, b.of->source_home)) return by;
  // Rule 5: Prefer matching label.
  return prefer(a.label_matches, b.label_matches);
}

// The rules between 8 and 9.
int compare_history(const candidate& a, const candidate& b) {
  // SORT-2: Prefer a lower expected round-trip time.
  const bool both_known = a.rtt > duration(0) && b.rtt > duration(0);
  if (both_known && a.rtt != b.rtt) return a.rtt < b.rtt ? -1 : 1;
  // SORT-3: Prefer used addresses.
  if (const int by = prefer(a.used, b.used)) return by;
  // XMPP-5: Prefer a higher weight.
  return static_cast<int>(b.weight) - static_cast<int>(a.weight);
}

// A destination that lately failed is one "known to be unreachable", but less surely so than one without
// a source.
int usability(const candidate& c) { return c.has_source ? (c.demoted ? 1 : 2) : 0; }

int compare(const ranked& a, const ranked& b) {
  // Rule 1: Avoid unusable destinations.
  if (const int by = usability(*b.of) - usability(*a.of)) return by;
  if (a.of->has_source) {
    if (const int by = compare_sources(a, b)) return by;
  }
  // Rule 6: Prefer higher precedence.
  if (a.precedence != b.precedence) return a.precedence > b.precedence ? -1 : 1;
  // Rule 7: Prefer native transport.
  if (const int by = prefer(!a.of->source_tunnelled, !b.of->source_tunnelled)) return by;
  // Rule 8: Prefer smaller scope.
  if (a.scope != b.scope) return a.scope < b.scope ? -1 : 1;
  if (const int by = compare_history(*a.of, *b.of)) return by;
  // Rule 9: Use longest matching prefix.
  if (a.of->has_source && counted_family(*a.of) == counted_family(*b.of)) {
    return b.matching_bits - a.matching_bits;
  }
  // Rule 10: Otherwise, leave the order unchanged.
  return 0;
}

int compare_groups(const candidate& a, const candidate& b) {
  if (a.service_priority != b.service_priority)
    return a.service_priority < b.service_priority ? -1 : 1;
  return static_cast<int>(a.service_rank) - static_cast<int>(b.service_rank);
}

int compare_for_qsort(const void* left, const void* right) {
  const auto& a = *static_cast<const ranked*>(left);
  const auto& b = *static_cast<const ranked*>(right);
  if (const int by = compare_groups(*a.of, *b.of)) return by;
  if (const int by = compare(a, b)) return by;
  return a.of < b.of ? -1 : 1;
}

constexpr std::size_t usual_candidates = 128;

void sort_ranked(std::span<candidate> list, std::span<ranked> ranks, std::span<candidate> sorted,
                 const policy_table& policy) {
  for (std::size_t i = 0; i < list.size(); ++i) ranks[i] = rank(list[i], policy);
  std::qsort(ranks.data(), ranks.size(), sizeof(ranked), compare_for_qsort);
  for (std::size_t i = 0; i < list.size(); ++i) sorted[i] = *ranks[i].of;
  std::copy(sorted.begin(), sorted.end(), list.begin());
}

}  // namespace

policy_table rfc6724_policy() { return {rfc6724_labels, rfc6724_precedences, ipv4_scope_rows}; }
policy_table glibc_policy() { return {glibc_labels, glibc_precedences, ipv4_scope_rows}; }

int compare(const candidate& a, const candidate& b, const policy_table& policy) {
  return compare(rank(a, policy), rank(b, policy));
}

// By libc's own qsort(), with which its getaddrinfo() sorts: rule 9 speaks of one family only, so "before"
// need not be transitive over a mixed list, and the outcome then depends on the way it is sorted
// (std::sort would have undefined behaviour).
void sort_by_preference(std::span<candidate> list, const policy_table& policy) {
  if (list.size() < 2) return;
  if (list.size() > usual_candidates) {
    std::vector<ranked> ranks(list.size());
    std::vector<candidate> sorted(list.size());
    return sort_ranked(list, ranks, sorted, policy);
  }
  std::array<ranked, usual_candidates> ranks;
  std::array<candidate, usual_candidates> sorted;
  sort_ranked(list, std::span(ranks).first(list.size()), std::span(sorted).first(list.size()),
              policy);
}

bool same_group(const candidate& a, const candidate& b) { return compare_groups(a, b) == 0; }

family counted_family(const candidate& c) {
  return c.translation_length != 0 ? family::ipv4 : c.destination.family;
}

bool holds(std::span<const candidate> list, const address& a) {
  return std::any_of(list.begin(), list.end(),
                     [&](const candidate& c) { return c.destination == a; });
}

bool holds(std::span<const candidate> list, const candidate& like) {
  return std::any_of(list.begin(), list.end(), [&](const candidate& c) {
    return c.destination == like.destination && c.port == like.port;
  });
}

}  // namespace happy
