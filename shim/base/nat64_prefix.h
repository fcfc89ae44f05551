// The prefix of a NAT64, and the list of them that HAPPY_PREF64 is: what the shim takes, happy-run lets through and
// the engine uses are one and the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "shim/base/bounded_vector.h"
#include "shim/base/endpoint.h"

namespace happy {

// RFC 6052 s2.2: the only lengths that a prefix can have, in bits.
inline constexpr std::uint8_t translation_lengths[] = {96, 64, 56, 48, 40, 32};

// Pref64::/n. What follows its length is zero.
struct nat64_prefix {
  std::array<std::uint8_t, 16> bytes{};
  std::uint8_t length = 96;

  friend constexpr bool operator==(const nat64_prefix&, const nat64_prefix&) = default;
};

// More prefixes than any network has translators for one host; further ones are not used.
inline constexpr std::size_t max_prefixes = 8;
using prefix_list = bounded_vector<nat64_prefix, max_prefixes>;

inline bool contains(const prefix_list& list, const nat64_prefix& prefix) {
  return std::find(list.begin(), list.end(), prefix) != list.end();
}

// Why something is no prefix, as text for people; nullptr: it is one.
using prefix_fault = const char*;

// The first `length` bits of `a`. Bits 64 to 71 are the "u" octet.
inline prefix_fault take_prefix(const address& a, int length, nat64_prefix& out) {
  if (a.family != family::ipv6 ||
      std::find(std::begin(translation_lengths), std::end(translation_lengths), length) ==
          std::end(translation_lengths)) {
    return "its length is not 32, 40, 48, 56, 64 or 96";
  }
  constexpr int u_octet = 8;
  if (length / 8 > u_octet && a.bytes[u_octet] != 0) return "bits 64 to 71 are not zero";
  nat64_prefix prefix;
  prefix.length = static_cast<std::uint8_t>(length);
  std::copy_n(a.bytes.begin(), length / 8, prefix.bytes.begin());
  if (prefix.bytes[0] == 0xff) return "it is a multicast prefix";
  if (prefix.bytes[0] == 0xfe && (prefix.bytes[1] & 0xc0) == 0x80) return "it is link-local";
  constexpr std::ptrdiff_t before_mapped = 8;  // ::ffff:0:0/96, ::/96, ::1 and ::/32 alike
  if (std::all_of(prefix.bytes.begin(), prefix.bytes.begin() + before_mapped,
                  [](std::uint8_t b) { return b == 0; })) {
    return "addresses that begin with 64 zero bits are the host's own";
  }
  out = prefix;
  return nullptr;
}

// "2001:db8:64::/96". Bits beyond the length are an error, as a mistyped length is the likeliest reason.
inline prefix_fault read_prefix(std::string_view text, nat64_prefix& out) {
  constexpr prefix_fault no_prefix = "it is no IPv6 prefix ADDRESS/LENGTH";
  const std::size_t slash = text.find('/');
  char digits[INET6_ADDRSTRLEN] = {};
  if (slash >= sizeof digits) return no_prefix;  // npos is the largest of all
  std::copy_n(text.begin(), slash, digits);
  in6_addr in6;
  if (inet_pton(AF_INET6, digits, &in6) != 1) return no_prefix;
  text.remove_prefix(slash + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  constexpr std::size_t most_digits = 3;
  if (text.empty() || text.size() > most_digits || !std::all_of(text.begin(), text.end(), is_digit))
    return no_prefix;
  int length = 0;
  for (const char c : text) length = length * 10 + (c - '0');
  if (text[0] == '0') length = 0;
  const address a = from_in6_addr(in6);
  nat64_prefix prefix;
  if (const prefix_fault fault = take_prefix(a, length, prefix)) return fault;
  if (prefix.bytes != a.bytes) return "bits beyond its length are set";
  out = prefix;
  return nullptr;
}

// A list by commas. Without a fault `out` holds all of it; `at` is the item that has the fault.
inline prefix_fault read_prefixes(std::string_view text, prefix_list& out, std::string_view& at) {
  prefix_list list;
  for (;;) {
    const std::size_t length = std::min(text.find(','), text.size());
    at = {text.data(), length};
    if (at.empty()) return "an item of the list is empty";
    nat64_prefix prefix;
    if (const prefix_fault fault = read_prefix(at, prefix)) return fault;
    if (contains(list, prefix)) return "it is in the list twice";
    if (!list.push_back(prefix)) return "there are more than 8 prefixes";
    if (length == text.size()) break;
    text.remove_prefix(length + 1);
  }
  out = list;
  return nullptr;
}

}  // namespace happy
