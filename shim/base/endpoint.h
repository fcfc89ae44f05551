// Addresses and endpoints as plain values, and their way to and from the socket API.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace happy {

enum class family : std::uint8_t { ipv4, ipv6 };

constexpr int to_af(family f) { return f == family::ipv4 ? AF_INET : AF_INET6; }
constexpr family other(family f) { return f == family::ipv4 ? family::ipv6 : family::ipv4; }

// An IP address. An IPv4 address occupies the first 4 bytes, the rest is zero; `scope` is the
// interface index of a link-local IPv6 address, otherwise 0.
struct address {
  happy::family family = family::ipv4;
  std::array<std::uint8_t, 16> bytes{};
  std::uint32_t scope = 0;

  friend constexpr bool operator==(const address&, const address&) = default;
};

// An address and a TCP port (host byte order).
struct endpoint {
  happy::address address;
  std::uint16_t port = 0;

  friend constexpr bool operator==(const endpoint&, const endpoint&) = default;
};

constexpr address make_ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  address result;
  result.bytes[0] = a;
  result.bytes[1] = b;
  result.bytes[2] = c;
  result.bytes[3] = d;
  return result;
}

inline address from_in_addr(const in_addr& in) {
  address result;
  std::memcpy(result.bytes.data(), &in, sizeof in);
  return result;
}

inline address from_in6_addr(const in6_addr& in, std::uint32_t scope = 0) {
  address result;
  result.family = family::ipv6;
  std::memcpy(result.bytes.data(), &in, sizeof in);
  result.scope = scope;
  return result;
}

// ::ffff:a.b.c.d
inline bool is_v4_mapped(const address& a) {
  static constexpr std::uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return a.family == family::ipv6 && std::memcmp(a.bytes.data(), prefix, sizeof prefix) == 0;
}

// The IPv4 address inside ::ffff:a.b.c.d; any other address as it is.
inline address unmapped(const address& a) {
  if (!is_v4_mapped(a)) return a;
  return make_ipv4(a.bytes[12], a.bytes[13], a.bytes[14], a.bytes[15]);
}

// How an AF_INET6 socket names an IPv4 address; an IPv6 address as it is.
inline address mapped(const address& a) {
  if (a.family == family::ipv6) return a;
  address result;
  result.family = family::ipv6;
  result.bytes[10] = result.bytes[11] = 0xff;
  std::memcpy(result.bytes.data() + 12, a.bytes.data(), 4);
  return result;
}

// A socket address with its length: what connect() and bind() take.
struct socket_address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

inline socket_address to_sockaddr(const endpoint& e) {
  socket_address result;
  if (e.address.family == family::ipv4) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(e.port);
    std::memcpy(&in.sin_addr, e.address.bytes.data(), sizeof in.sin_addr);
    std::memcpy(&result.storage, &in, sizeof in);
    result.length = sizeof in;
  } else {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(e.port);
    in6.sin6_scope_id = e.address.scope;
    std::memcpy(&in6.sin6_addr, e.address.bytes.data(), sizeof in6.sin6_addr);
    std::memcpy(&result.storage, &in6, sizeof in6);
    result.length = sizeof in6;
  }
  return result;
}

// False, and `out` untouched, for anything that is not a complete IPv4 or IPv6 socket address.
inline bool from_sockaddr(const sockaddr* sa, socklen_t length, endpoint& out) {
  if (sa == nullptr || length < sizeof(sa_family_t)) return false;
  if (sa->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in in;
    std::memcpy(&in, sa, sizeof in);
    out = {from_in_addr(in.sin_addr), ntohs(in.sin_port)};
    return true;
  }
  // The kernel takes an IPv6 address without its scope id as well (SIN6_LEN_RFC2133).
  constexpr socklen_t without_scope = offsetof(sockaddr_in6, sin6_scope_id);
  if (sa->sa_family == AF_INET6 && length >= without_scope) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, sa, length < sizeof in6 ? without_scope : sizeof in6);
    out = {from_in6_addr(in6.sin6_addr, in6.sin6_scope_id), ntohs(in6.sin6_port)};
    return true;
  }
  return false;
}

// "2001:db8::1", "192.0.2.1", "fe80::1%3": the longest is 45 characters, '%', 10 digits and NUL.
struct address_text {
  char chars[INET6_ADDRSTRLEN + 12];
};

// Context: no allocation; inet_ntop only, so usable wherever the trace is.
inline address_text to_text(const address& a) {
  address_text text{};
  if (inet_ntop(to_af(a.family), a.bytes.data(), text.chars, sizeof text.chars) == nullptr) {
    text.chars[0] = '?';
  }
  if (a.scope == 0) return text;
  std::size_t at = std::strlen(text.chars);
  text.chars[at++] = '%';
  char digits[10];
  int count = 0;
  for (std::uint32_t rest = a.scope; rest != 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  while (count > 0) text.chars[at++] = digits[--count];
  return text;
}

}  // namespace happy
