#include "resolver/thread_resolver.h"

#include <netinet/in.h>
#include <resolv.h>

#include <algorithm>

#include "resolver/nameserver_health.h"

namespace happy {
namespace {

// The state's nameserver number `i`; an IPv6 one stands in the extension. False: none that we could ask.
bool nameserver(const struct __res_state& state, int i, endpoint& out) {
  const sockaddr_in& ipv4 = state.nsaddr_list[i];
  if (ipv4.sin_family == AF_INET) {
    return from_sockaddr(reinterpret_cast<const sockaddr*>(&ipv4), sizeof ipv4, out);
  }
  const sockaddr_in6* ipv6 = state._u._ext.nsaddrs[i];
  return ipv6 != nullptr &&
         from_sockaddr(reinterpret_cast<const sockaddr*>(ipv6), sizeof *ipv6, out);
}

bool same_nameservers(const struct __res_state& state, const resolver_config& config) {
  const auto expected = std::min<std::size_t>(config.nameservers.size(), MAXNS);
  if (static_cast<std::size_t>(state.nscount) != expected) return false;
  for (int i = 0; i < state.nscount; ++i) {
    endpoint server;
    if (!nameserver(state, i, server) || server.port != dns_port) return false;
    if (server.address != config.nameservers[static_cast<std::size_t>(i)]) return false;
  }
  return true;
}

// The state holds as much of the list as has room in it.
bool same_search_list(const struct __res_state& state, const resolver_config& config) {
  std::size_t room = sizeof state.defdname;
  std::size_t i = 0;
  for (; i < config.search.size() && i < MAXDNSRCH; ++i) {
    const std::string& domain = config.search[i];
    if (domain.size() + 1 > room) break;
    room -= domain.size() + 1;
    if (state.dnsrch[i] == nullptr || domain != state.dnsrch[i]) return false;
  }
  return state.dnsrch[i] == nullptr;
}

// What res_init() makes of these options.
unsigned long options_of(const resolver_config& config) {
  unsigned long options = RES_DEFAULT;
  if (config.rotate) options |= RES_ROTATE;
  if (config.edns0) options |= RES_USE_EDNS0;
  if (config.use_vc) options |= RES_USEVC;
  if (config.trust_ad) options |= RES_TRUSTAD;
  if (config.no_tld_query) options |= RES_NOTLDQUERY;
  constexpr unsigned long no_aaaa = 0x08000000;  // RES_NOAAAA, which glibc has from 2.36 on
  if (config.no_aaaa) options |= no_aaaa;
  return options;
}

// libc itself sets the latter two when an answer is lost, for as long as the thread lives. They forbid two questions
// from one port, which are not asked here.
constexpr unsigned long not_compared = RES_INIT | RES_SNGLKUP | RES_SNGLKUPREOP;

}  // namespace

bool thread_resolver_agrees(const resolver_config& config) { return resolver_agrees(_res, config); }

bool resolver_agrees(const struct __res_state& state, const resolver_config& config) {
  if ((state.options & RES_INIT) == 0) return true;
  return (state.options & ~not_compared) == options_of(config) &&
         state.retrans == config.timeout_s && state.retry == config.attempts &&
         state.ndots == config.ndots && same_nameservers(state, config) &&
         same_search_list(state, config);
}

int first_answering(const struct __res_state& state, time_point now) {
  const bool edns = (state.options & RES_USE_EDNS0) != 0;
  for (int i = 0; i < state.nscount && i < MAXNS; ++i) {
    endpoint server;
    if (!nameserver(state, i, server)) break;
    if (!known_health().is_penalised(nameserver_health::key_of(server.address, edns), now))
      return i;
  }
  return 0;
}

}  // namespace happy
