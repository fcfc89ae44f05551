#include "shim/policy.h"

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace happy {
namespace {

// Every bit beyond an address makes a number too large; so does the cap, where it stops growing.
constexpr std::uint64_t too_large = std::uint64_t{1} << 32;

unsigned decimal_digit(char c) { return static_cast<unsigned>(c) - '0'; }

unsigned hex_digit(char c) {
  const unsigned letter = static_cast<unsigned>(c | 0x20) - 'a';
  return letter < 6 ? letter + 10 : decimal_digit(c);
}

template <unsigned Base, unsigned (*Digit)(char)>
std::uint64_t take_digits(const char*& text) {
  std::uint64_t value = 0;
  for (unsigned digit; (digit = Digit(*text)) < Base; ++text) {
    if (value < too_large) value = value * Base + digit;
  }
  return value;
}

// Reads what strtoul(text, &text, 0) would at a digit: "10", "012", "0xa".
std::uint64_t take_number(const char*& text) {
  if (text[0] != '0') return take_digits<10, decimal_digit>(text);
  if ((text[1] | 0x20) != 'x' || hex_digit(text[2]) >= 16)
    return take_digits<8, decimal_digit>(text);
  text += 2;
  return take_digits<16, hex_digit>(text);
}

// Whether inet_aton() takes it: "192.0.2.1", "127.1", "0x7f000001", "1.2.3.4 and more". inet_aton()
// itself takes 40 ns.
bool is_ipv4_number(const char* text) {
  for (unsigned part = 0; part < 4; ++part) {
    if (decimal_digit(*text) > 9) return false;
    const std::uint64_t value = take_number(text);
    if (*text == '.' && part < 3) {
      if (value > 0xff) return false;
      ++text;
      continue;
    }
    if (*text != 0 && *text != ' ' && (*text < '\t' || *text > '\r')) return false;
    return value < too_large >> (8 * part);  // the last part fills the rest
  }
  return false;
}

// What begins with a digit, and then has digits and dots alone, is a number or no name that the DNS has.
// A quarter of what the exact answer costs.
bool is_number(const char* text) {
  if (decimal_digit(*text) > 9) return false;
  const char* end = text;
  while (decimal_digit(*end) <= 9 || *end == '.') ++end;
  return *end == 0 || is_ipv4_number(text);
}

}  // namespace

const char* to_text(pass_reason reason) {
  switch (reason) {
    case pass_reason::none: return "none";
    case pass_reason::no_name: return "no name given";
    case pass_reason::numeric: return "numeric address";
    case pass_reason::not_ip: return "not an IP address";
    case pass_reason::engine_missing: return "engine not loaded";
  }
  return "?";
}

pass_reason judge_lookup(const char* node, const addrinfo* hints) {
  if (node == nullptr) return pass_reason::no_name;
  if (hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0) return pass_reason::numeric;
  if (is_number(node)) return pass_reason::numeric;
  if (std::strchr(node, ':') != nullptr) return pass_reason::numeric;
  return pass_reason::none;
}

pass_reason judge_connect(const sockaddr* to, socklen_t length) {
  if (to == nullptr || length < sizeof(sa_family_t)) return pass_reason::not_ip;
  if (to->sa_family == AF_INET && length >= sizeof(sockaddr_in)) return pass_reason::none;
  constexpr socklen_t without_scope = offsetof(sockaddr_in6, sin6_scope_id);
  if (to->sa_family == AF_INET6 && length >= without_scope) return pass_reason::none;
  return pass_reason::not_ip;
}

}  // namespace happy
