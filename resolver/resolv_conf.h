// What resolv.conf and its environment variables say, as glibc's res_init.c reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "resolver/decline_reason.h"
#include "shim/base/bounded_vector.h"
#include "shim/base/endpoint.h"
#include "shim/base/time.h"

namespace happy {

// glibc stops at 3. More than 16 cannot be asked within a lookup: at the shortest timeout of one
// second each, two rounds would outlast every program's patience.
inline constexpr std::size_t max_nameservers = 16;

// resolv.conf names no other.
inline constexpr std::uint16_t dns_port = 53;

// glibc's RES_MAXNDOTS, RES_MAXRETRANS, RES_MAXRETRY: larger values count as these.
inline constexpr int max_ndots = 15;
inline constexpr int max_timeout_s = 30;
inline constexpr int max_attempts = 5;

// As many names as nobody waits for. With a longer list it is glibc that searches.
inline constexpr std::size_t max_search_domains = 64;

struct resolver_config {
  bounded_vector<address, max_nameservers> nameservers;  // in file order; never empty
  std::vector<std::string> search;
  int ndots = 1;
  int timeout_s = 5;  // per try; at least 1
  int attempts = 2;   // rounds over all nameservers; at least 1
  bool rotate = false;
  bool edns0 = false;
  bool use_vc = false;    // TCP from the start
  bool trust_ad = false;  // the AD bit is set in queries
  bool no_aaaa = false;
  bool no_tld_query = false;
  bool one_by_one =
      false;  // single-request-reopen: libc asks for A first, and its failure is the end
  std::uint64_t generation = 0;  // system_snapshot's
};

// What of the process and the host takes part.
struct resolver_environment {
  std::optional<std::string> local_domain;  // LOCALDOMAIN
  std::optional<std::string> res_options;   // RES_OPTIONS
  std::string host_name;
  // if_nametoindex(), for the scope of a link-local nameserver; nullptr: names of interfaces mean nothing
  unsigned (*interface_index)(const char* name) = nullptr;

  friend bool operator==(const resolver_environment&, const resolver_environment&) = default;
};

// How long glibc asks around before it asks everyone again, if all stay silent: its own sum of time-outs.
duration glibc_round(const resolver_config& config);

// Pure but for `environment.interface_index`. A line or word that glibc ignores is ignored here too.
std::variant<resolver_config, decline_reason> parse_resolv_conf(
    std::string_view text, const resolver_environment& environment);

}  // namespace happy
