#include "shim/policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstddef>
#include <cstring>

namespace happy {

const char* to_text(pass_reason reason) {
  switch (reason) {
    case pass_reason::none: return "none";
    case pass_reason::no_name: return "no name given";
    case pass_reason::passive: return "addresses to listen on";
    case pass_reason::numeric: return "numeric address";
    case pass_reason::not_ip: return "not an IP address";
    case pass_reason::engine_missing: return "engine not loaded";
  }
  return "?";
}

pass_reason judge_lookup(const char* node, const addrinfo* hints) {
  if (node == nullptr) return pass_reason::no_name;
  if (hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0) return pass_reason::numeric;
  in_addr ignored;
  if (inet_aton(node, &ignored) != 0) return pass_reason::numeric;  // "127.1", "0x7f000001", ...
  if (std::strchr(node, ':') != nullptr) return pass_reason::numeric;
  if (hints != nullptr && (hints->ai_flags & AI_PASSIVE) != 0) return pass_reason::passive;
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
