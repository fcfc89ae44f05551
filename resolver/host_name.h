// What is a host name, to glibc's nss_dns.
#pragma once

#include <algorithm>
#include <string_view>

#include "resolver/text_scan.h"

namespace happy {

// RFC 1035 s2.3.4: 255 octets on the wire are 253 characters without the trailing dot.
inline constexpr std::size_t max_name_length = 253;
inline constexpr std::size_t max_label_length = 63;

constexpr std::string_view without_dot(std::string_view name) {
  if (!name.empty() && name.back() == '.') name.remove_suffix(1);
  return name;
}

constexpr bool is_host_char(char c) {
  const char low = to_lower(c);
  return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

// glibc's res_hnok(), but for the root and escaped characters, which are no host names here.
constexpr bool is_host_name(std::string_view name) {
  if (name.empty() || name.size() > max_name_length || name.front() == '-') return false;
  if (!std::all_of(name.begin(), name.end(), is_host_char)) return false;
  std::size_t label = 0;
  for (const char c : name) {
    if (c == '.' && label == 0) return false;
    label = c == '.' ? 0 : label + 1;
    if (label > max_label_length) return false;
  }
  return label > 0;
}

}  // namespace happy
