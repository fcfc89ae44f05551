#include "resolver/connectivity.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <atomic>
#include <cerrno>
#include <memory>

#include "resolver/address_scope.h"
#include "resolver/clock.h"
#include "resolver/source_address.h"

namespace happy {
namespace {

// Addresses that only a default route (or a complete table) leads to: a.root-servers.net.
constexpr address far_ipv4 = make_ipv4(198, 41, 0, 4);
constexpr address far_ipv6 = {
    .family = family::ipv6,
    .bytes = {0x20, 0x01, 0x05, 0x03, 0xba, 0x3e, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0x30}};

// Of the addresses from which the far ones would be asked.
constinit std::atomic<std::uint64_t> fingerprint{0};

// FNV-1a
std::uint64_t mixed(std::uint64_t hash, const address& a) {
  for (const std::uint8_t byte : a.bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

bool reaches(source_probe& probe, const address& far, std::uint64_t& hash) {
  candidate c{.destination = far};
  probe.probe(c, 0);
  hash = mixed(hash, c.source);
  return c.has_source && privacy_of(c.source) > privacy::link_local;
}

// The kernel has said so: a socket that could not be had says nothing.
bool is_without_route(const address& far) {
  errno_saver keep;
  const unique_fd fd(real->socket(to_af(far.family), SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_IP));
  const socket_address to = to_sockaddr({far, 0});
  return fd.valid() && real->connect(fd.get(), to.get(), to.length) != 0 && errno == ENETUNREACH;
}

// How far an interface's address reaches; own_host for what is no address.
privacy reach_of(const sockaddr* a) {
  endpoint where;
  if (!from_sockaddr(a, a->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6),
                     where)) {
    return privacy::own_host;
  }
  return privacy_of(where.address);
}

bool prefers_ipv6() {
  source_probe probe;
  std::uint64_t hash = 0xcbf29ce484222325u;
  const bool ipv6 = reaches(probe, far_ipv6, hash);
  const bool ipv4 = reaches(probe, far_ipv4, hash);
  fingerprint.store(hash, std::memory_order_relaxed);
  return ipv6 || !ipv4;
}

// A yes or no that holds for preference_lifetime.
class recent_answer {
 public:
  template <typename Question>
  bool get(const Question& ask) {
    constexpr std::int64_t yes = 1;
    const std::int64_t now = clock_now().time_since_epoch().count() & ~yes;
    const std::int64_t known = kept_.load(std::memory_order_relaxed);
    const std::int64_t age = now - (known & ~yes);
    if (known != 0 && age >= 0 && age < preference_lifetime.count()) return (known & yes) != 0;
    const bool answer = ask();
    kept_.store(now | (answer ? yes : 0), std::memory_order_relaxed);
    return answer;
  }

 private:
  // When it was asked, in nanoseconds; the lowest bit is the answer.
  std::atomic<std::int64_t> kept_{0};
};

}  // namespace

configured_families families_configured() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  configured_families found{.ipv4 = false, .ipv6 = false};
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int af = entry->ifa_addr->sa_family;
    if ((af != AF_INET && af != AF_INET6) || reach_of(entry->ifa_addr) == privacy::own_host)
      continue;
    (af == AF_INET ? found.ipv4 : found.ipv6) = true;
  }
  return found;
}

std::uint64_t network_fingerprint() {
  preferred_family();
  return fingerprint.load(std::memory_order_relaxed);
}

sources_outward find_sources_outward() {
  sources_outward out{{.destination = far_ipv6}, {.destination = far_ipv4}};
  source_probe probe;
  probe.probe(out.ipv6, 0);
  probe.probe(out.ipv4, 0);
  return out;
}

bool is_ipv6_only() {
  static constinit recent_answer only;
  return only.get([] {
    source_probe probe;
    std::uint64_t ignored = 0;
    return is_without_route(far_ipv4) && reaches(probe, far_ipv6, ignored);
  });
}

bool has_connectivity(family f) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return true;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != to_af(f)) continue;
    if (reach_of(entry->ifa_addr) > privacy::link_local) return true;
  }
  return false;
}

family preferred_family() {
  static constinit recent_answer ipv6;
  return ipv6.get(prefers_ipv6) ? family::ipv6 : family::ipv4;
}

}  // namespace happy
