#include "resolver/query_settings.h"

#include <algorithm>

#include "resolver/connectivity.h"
#include "resolver/host_name.h"
#include "resolver/resolve.h"

namespace happy {
namespace {

constexpr std::uint16_t https_port = 443;

// QUERY-3: where the service records of `name` are, if one of the services is at `port`.
// RFC 9460 s2.3, s9.1: https at its own port needs no prefix.
void ask_for_service(resolution::settings& s, const std::string& name, std::uint16_t port,
                     const resolve_options& options) {
  const auto service =
      std::find_if(options.services.begin(), options.services.end(),
                   [port](const known_service& k) { return k.port == port && port != 0; });
  if (service == options.services.end()) return;
  const bool https = service->scheme == "https";
  s.service_type = https ? record_type::https : record_type::svcb;
  s.service_name = name;
  if (!https || port != https_port)
    s.service_name = '_' + std::to_string(port) + "._" + service->scheme + '.' + name;
  if (!is_host_name(s.service_name)) s.service_name.clear();  // longer than a name can be
}

}  // namespace

wish read_hints(const addrinfo* hints) {
  if (hints == nullptr) return {};
  return {hints->ai_flags, hints->ai_family, hints->ai_socktype};
}

wish look_at_host(wish w, const resolve_options& options) {
  if ((w.flags & AI_ADDRCONFIG) == 0) return w;
  w.configured = families_configured();
  const bool ipv6_alone = w.configured->ipv6 && !w.configured->ipv4;
  const bool translates = !options.nat64.empty() || options.nat64_sought;
  const bool narrowed = w.af == AF_UNSPEC && ipv6_alone && !translates;
  if (narrowed && (w.flags & AI_V4MAPPED) != 0) w.af = AF_INET6;
  return w;
}

std::vector<known_service> services_from(const happy_settings& settings) {
  if (settings.service_records == 0) return {};
  std::vector<known_service> services{{https_port, "https"}};
  for (const happy_service& s : settings.services) {
    if (s.port != 0) services.push_back({s.port, s.scheme});
  }
  return services;
}

const happy_srv_service* srv_service_of(const char* service, std::uint16_t port,
                                        const resolve_options& options) {
  const auto is_meant = [&](const happy_srv_service& s) {
    return s.name[0] != 0 && ((service != nullptr && equal_ignoring_case(service, s.name)) ||
                              (s.port != 0 && s.port == port));
  };
  const auto found = std::find_if(options.srv.begin(), options.srv.end(), is_meant);
  return found == options.srv.end() ? nullptr : &*found;
}

void ask_for_srv(resolution::settings& s, const happy_srv_service& service) {
  const std::string owner = '_' + std::string(service.name) + "._tcp." + s.name;
  if (!is_host_name(owner)) return;
  s.service_name = owner;
  s.service_type = record_type::srv;
  s.in_reserve.reset();
}

resolution::settings settings_for(const wish& w, const name_plan& plan, std::uint16_t port,
                                  const resolve_options& options, time_point now) {
  resolution::settings s;
  s.name = plan.name;
  const v4_mapping mapping = w.mapping();
  s.ipv4 = w.af != AF_INET6 || mapping != v4_mapping::none;
  s.ipv6 = w.af != AF_INET;
  s.ipv4_is_substitute = mapping == v4_mapping::substitute;
  // Neither configured: glibc asks for both.
  if (w.configured && w.af == AF_UNSPEC && w.configured->ipv4 != w.configured->ipv6) {
    s.ipv4 = w.configured->ipv4 || !options.nat64.empty();  // V6ONLY-4
    s.ipv6 = w.configured->ipv6;
  }
  if (plan.config->no_aaaa) s.ipv6 = false;
  s.preferred = preferred_family();
  s.delay = options.resolution_delay;
  s.companion_delay = options.v2 ? duration(0) : companion_delay_for(options.resolution_delay);
  if (options.v2 || mapping != v4_mapping::none) s.preferred = family::ipv6;
  // A datagram client never comes to connect() a second address: it needs both families now.
  s.complete = options.complete || w.socktype == SOCK_DGRAM;
  s.deadline = now + glibc_patience(*plan.config);
  s.last_chance = glibc_round(*plan.config);
  if (s.complete || mapping != v4_mapping::none) return s;
  if (s.ipv4 && s.ipv6 && s.preferred == family::ipv4 && !has_connectivity(family::ipv6))
    s.in_reserve = family::ipv6;
  // QUERY-2: there may be a prefix; by the time of connect() it is known.
  if (!s.ipv4 && w.af == AF_UNSPEC && options.nat64_sought) {
    s.ipv4 = true;
    s.in_reserve = family::ipv4;
  }
  ask_for_service(s, plan.name, port, options);
  s.seed = static_cast<std::uint32_t>(now.time_since_epoch().count());
  return s;
}

}  // namespace happy
