// Addresses in tests as they are written.
#pragma once

#include <stdexcept>
#include <string>

#include "shim/base/endpoint.h"

namespace happy::test {

inline address ip(const std::string& text) {
  in_addr v4;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return from_in_addr(v4);
  in6_addr v6;
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) return from_in6_addr(v6);
  throw std::invalid_argument("not an address: " + text);
}

inline std::string text(const address& a) {
  char buffer[INET6_ADDRSTRLEN];
  return inet_ntop(to_af(a.family), a.bytes.data(), buffer, sizeof buffer);
}

}  // namespace happy::test
