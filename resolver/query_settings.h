// Which queries a lookup begins with.
#pragma once

#include <netdb.h>

#include <optional>
#include <string>
#include <vector>

#include "resolver/connectivity.h"
#include "resolver/name_plan.h"
#include "resolver/resolution.h"
#include "resolver/v4_mapping.h"
#include "shim/abi.h"

namespace happy {

struct resolve_options;

// A service whose records steer connects to its port: https at 443, and what the user lists.
struct known_service {
  std::uint16_t port = 0;
  std::string scheme;
};

// What the user's settings say.
std::vector<known_service> services_from(const happy_settings& settings);

// The program's hints, or what glibc puts in their place.
struct wish {
  int flags = AI_V4MAPPED | AI_ADDRCONFIG;
  int af = AF_UNSPEC;
  int socktype = 0;
  std::optional<configured_families> configured{};  // with AI_ADDRCONFIG

  v4_mapping mapping() const { return mapping_of(flags, af); }
};

wish read_hints(const addrinfo* hints);

// The wish with what this host has for AI_ADDRCONFIG. Who takes mapped addresses and is on a host that has
// IPv6 alone has asked for IPv6 alone (glibc), unless IPv4 ones are of use as they are (V6ONLY-4).
//
// Context:  reads interfaces.
wish look_at_host(wish w, const resolve_options& options);

// `w`: from look_at_host(). `port`: of the service that the lookup is for; 0: not known.
//
// Spec:     QUERY-1 to QUERY-3
resolution::settings settings_for(const wish& w, const name_plan& plan, std::uint16_t port,
                                  const resolve_options& options, time_point now);

// The listed SRV service that a lookup is for: by its name, or by its port where that is listed, too.
const happy_srv_service* srv_service_of(const char* service, std::uint16_t port,
                                        const resolve_options& options);

// SRV records instead of other service records (XMPP-1).
void ask_for_srv(resolution::settings& s, const happy_srv_service& service);

}  // namespace happy
