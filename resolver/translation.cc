#include "resolver/translation.h"

#include "resolver/address_scope.h"

namespace happy {
namespace {

constexpr std::size_t u_octet = 8;
constexpr std::size_t ipv4_size = 4;

// Where the octets of the IPv4 address stand: behind the prefix, the "u" octet left out.
std::array<std::size_t, ipv4_size> places(std::uint8_t length) {
  std::array<std::size_t, ipv4_size> result{};
  std::size_t at = length / 8;
  for (std::size_t& place : result) {
    if (at == u_octet) ++at;
    place = at++;
  }
  return result;
}

bool starts_with(const address& a, std::uint8_t first, std::uint8_t second) {
  return a.bytes[0] == first && a.bytes[1] == second;
}

// 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16; 192.0.0.0/24, which IETF protocols use between a host and its
// first router; 224.0.0.0/4 and 240.0.0.0/4 with 255.255.255.255.
bool is_unsuitable(const address& ipv4) {
  const std::uint8_t first = ipv4.bytes[0];
  if (first == 0 || first == 127 || first >= 224) return true;
  if (starts_with(ipv4, 169, 254)) return true;
  return starts_with(ipv4, 192, 0) && ipv4.bytes[2] == 0;
}

}  // namespace

std::optional<nat64_prefix> make_prefix(const address& a, int length) {
  nat64_prefix prefix;
  return take_prefix(a, length, prefix) == nullptr ? std::optional(prefix) : std::nullopt;
}

std::optional<nat64_prefix> parse_prefix(std::string_view text) {
  nat64_prefix prefix;
  return read_prefix(text, prefix) == nullptr ? std::optional(prefix) : std::nullopt;
}

address synthesise(const nat64_prefix& prefix, const address& ipv4) {
  address result;
  result.family = family::ipv6;
  result.bytes = prefix.bytes;
  const auto where = places(prefix.length);
  for (std::size_t i = 0; i < ipv4_size; ++i) result.bytes[where[i]] = ipv4.bytes[i];
  return result;
}

address octets_behind(std::uint8_t length, const address& a) {
  const auto where = places(length);
  return make_ipv4(a.bytes[where[0]], a.bytes[where[1]], a.bytes[where[2]], a.bytes[where[3]]);
}

std::optional<address> embedded_ipv4(const nat64_prefix& prefix, const address& a) {
  if (a.family != family::ipv6) return std::nullopt;
  const address ipv4 = octets_behind(prefix.length, a);
  if (synthesise(prefix, ipv4).bytes != a.bytes) return std::nullopt;
  return ipv4;
}

bool may_synthesise(const nat64_prefix& prefix, const address& ipv4) {
  if (ipv4.family != family::ipv4 || is_unsuitable(ipv4)) return false;
  return prefix != well_known_prefix || privacy_of(ipv4) == privacy::global;
}

prefix_text to_text(const nat64_prefix& prefix) {
  prefix_text text{};
  const address a{.family = family::ipv6, .bytes = prefix.bytes};
  const address_text address = to_text(a);
  std::size_t at = std::strlen(address.chars);
  std::memcpy(text.chars, address.chars, at);
  text.chars[at++] = '/';
  text.chars[at++] = static_cast<char>('0' + prefix.length / 10);
  text.chars[at] = static_cast<char>('0' + prefix.length % 10);
  return text;
}

}  // namespace happy
