#include "resolver/netlink/route.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "resolver/netlink/request.h"

namespace happy::netlink {
namespace {

// Destinations that only a default route (or a complete table) leads to: a.root-servers.net.
constexpr happy_netlink_address far_ipv4 = {AF_INET, {198, 41, 0, 4}, 0};
constexpr happy_netlink_address far_ipv6 = {
    AF_INET6, {0x20, 0x01, 0x05, 0x03, 0xba, 0x3e, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0x30}, 0};

// Hundredths of a second, the unit of IFA_CACHEINFO; wraps around as it does.
std::uint32_t boot_centiseconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint32_t>(t.tv_sec * 100 + t.tv_nsec / 10'000'000);
}

// What stands before the attributes of a message of that type; nullptr: it is of another, or cut off.
template <typename Fixed, int count>
const Fixed* parse(nlmsghdr* header, int type, nlattr* (&attributes)[count]) {
  if (header->nlmsg_type != type ||
      nlmsg_parse(header, sizeof(Fixed), attributes, count - 1, nullptr) < 0) {
    return nullptr;
  }
  return static_cast<const Fixed*>(nlmsg_data(header));
}

happy_netlink_address address_of(const nlattr* a, int family, unsigned interface) {
  if (a == nullptr) return {};
  return to_address(family, nla_data(a), static_cast<std::size_t>(nla_len(a)), interface);
}

unsigned number_of(const nlattr* a) { return a == nullptr ? 0 : nla_get_u32(a); }

bool is_link_local(const std::uint8_t* b, int family) {
  if (family == AF_INET) return b[0] == 169 && b[1] == 254;
  return b[0] == 0xfe && (b[1] & 0xc0) == 0x80;
}

bool is_loopback(const std::uint8_t* b, int family) {
  if (family == AF_INET) return b[0] == 127;
  static constexpr std::uint8_t loopback[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return std::memcmp(b, loopback, sizeof loopback) == 0;
}

happy_netlink_family* family_in(happy_netlink_network& n, int family) {
  if (family == AF_INET) return &n.ipv4;
  return family == AF_INET6 ? &n.ipv6 : nullptr;
}

// ---- addresses ----

int take_address(nlmsghdr* header, void* argument) {
  auto& network = *static_cast<happy_netlink_network*>(argument);
  nlattr* attributes[IFA_MAX + 1];
  const auto* m = parse<ifaddrmsg>(header, RTM_NEWADDR, attributes);
  if (m == nullptr) return NL_OK;
  happy_netlink_family* family = family_in(network, m->ifa_family);
  // IFA_LOCAL is the own end of a point-to-point link, where IFA_ADDRESS is the other.
  const nlattr* own =
      attributes[IFA_LOCAL] != nullptr ? attributes[IFA_LOCAL] : attributes[IFA_ADDRESS];
  happy_netlink_own_address a{};
  a.where = address_of(own, m->ifa_family, m->ifa_index);
  if (family == nullptr || a.where.family == af_none) return NL_OK;
  a.prefix_length = m->ifa_prefixlen;
  a.scope = m->ifa_scope;
  a.flags = attributes[IFA_FLAGS] != nullptr ? nla_get_u32(attributes[IFA_FLAGS]) : m->ifa_flags;
  a.age_ms = -1;
  if (attributes[IFA_CACHEINFO] != nullptr &&
      nla_len(attributes[IFA_CACHEINFO]) >= static_cast<int>(sizeof(ifa_cacheinfo))) {
    const auto* times = static_cast<const ifa_cacheinfo*>(nla_data(attributes[IFA_CACHEINFO]));
    const std::uint32_t age = boot_centiseconds() - times->cstamp;
    // The two clocks are read one after the other and rounded apart.
    a.age_ms = age > UINT32_MAX / 2 ? 0 : std::int64_t{age} * 10;
  }
  constexpr std::uint32_t unusable = IFA_F_TENTATIVE | IFA_F_DADFAILED;
  const bool beyond_link =
      !is_link_local(a.where.bytes, a.where.family) && !is_loopback(a.where.bytes, a.where.family);
  if (beyond_link && (a.flags & unusable) == 0) family->has_address = 1;
  if (network.address_count == HAPPY_NETLINK_MAX_ADDRESSES) return NL_STOP;
  network.addresses[network.address_count++] = a;
  return NL_OK;
}

int read_addresses(const socket& s, happy_netlink_network& out) {
  const ifaddrmsg all{};
  const message m = make_message(RTM_GETADDR, NLM_F_DUMP, all);
  return ask(s, m.get(), take_address, &out);
}

// ---- routes ----

// One that counts ends the walk: a router's table may have a million of them.
int take_any_route(nlmsghdr* header, void* argument) {
  nlattr* attributes[RTA_MAX + 1];
  const auto* m = parse<rtmsg>(header, RTM_NEWROUTE, attributes);
  if (m == nullptr) return NL_OK;
  if (m->rtm_type != RTN_UNICAST || m->rtm_table == RT_TABLE_LOCAL) return NL_OK;
  const happy_netlink_address to = address_of(attributes[RTA_DST], m->rtm_family, 0);
  const bool narrow = m->rtm_dst_len > 0;
  if (narrow && (to.family == af_none || is_link_local(to.bytes, to.family) ||
                 is_loopback(to.bytes, to.family))) {
    return NL_OK;
  }
  constexpr std::uint8_t multicast_ipv6 = 0xff;
  if (narrow && m->rtm_family == AF_INET6 && to.bytes[0] == multicast_ipv6) return NL_OK;
  *static_cast<int*>(argument) = 1;
  return NL_STOP;
}

int has_route(int family, int& found) {
  socket s;  // its own: an answer that is not read to its end would be in the next one's way
  if (const int error = s.open(NETLINK_ROUTE)) return error;
  rtmsg all{};
  all.rtm_family = static_cast<std::uint8_t>(family);
  const message m = make_message(RTM_GETROUTE, NLM_F_DUMP, all);
  return ask(s, m.get(), take_any_route, &found);
}

int take_route(nlmsghdr* header, void* argument) {
  auto& out = *static_cast<happy_netlink_route*>(argument);
  nlattr* attributes[RTA_MAX + 1];
  const auto* m = parse<rtmsg>(header, RTM_NEWROUTE, attributes);
  if (m == nullptr) return NL_OK;
  out.is_local = m->rtm_type == RTN_LOCAL ? 1 : 0;
  out.reachable = m->rtm_type == RTN_UNREACHABLE || m->rtm_type == RTN_PROHIBIT ||
                          m->rtm_type == RTN_BLACKHOLE || m->rtm_type == RTN_THROW
                      ? 0
                      : 1;
  out.prefix_length = m->rtm_dst_len;
  out.interface = number_of(attributes[RTA_OIF]);
  out.source = address_of(attributes[RTA_PREFSRC], m->rtm_family, out.interface);
  out.gateway = address_of(attributes[RTA_GATEWAY], m->rtm_family, out.interface);
  if (attributes[RTA_VIA] != nullptr) {  // an IPv4 route by way of an IPv6 neighbour (RFC 5549)
    const auto* via = static_cast<const rtvia*>(nla_data(attributes[RTA_VIA]));
    const auto size = static_cast<std::size_t>(nla_len(attributes[RTA_VIA])) - sizeof *via;
    out.gateway = to_address(via->rtvia_family, via->rtvia_addr, size, out.interface);
  }
  return NL_STOP;
}

// `flags`: 0 for what would be used, RTM_F_FIB_MATCH for the table's entry.
int ask_route(const socket& s, const happy_netlink_address& to, unsigned flags,
              happy_netlink_route& out) {
  const auto size = static_cast<int>(address_size(to.family));
  rtmsg wanted{};
  wanted.rtm_family = static_cast<std::uint8_t>(to.family);
  wanted.rtm_dst_len = static_cast<std::uint8_t>(size * 8);
  wanted.rtm_flags = flags;
  const message m = make_message(RTM_GETROUTE, 0, wanted);
  if (m == nullptr || nla_put(m.get(), RTA_DST, size, to.bytes) < 0) return ENOMEM;
  if (to.interface != 0 && nla_put_u32(m.get(), RTA_OIF, to.interface) < 0) return ENOMEM;
  return ask(s, m.get(), take_route, &out);
}

bool is_no_route(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == EACCES || error == EINVAL;
}

int find_route_with(const socket& s, const happy_netlink_address& to, happy_netlink_route& out) {
  happy_netlink_route used{};
  const int error = ask_route(s, to, 0, used);
  if (is_no_route(error)) {
    out = {};
    return 0;
  }
  if (error != 0) return error;
  happy_netlink_route entry{};
  if (ask_route(s, to, RTM_F_FIB_MATCH, entry) == 0) used.prefix_length = entry.prefix_length;
  out = used;
  return 0;
}

// ---- which network ----

// FNV-1a, 64 bits.
class fingerprint {
 public:
  void add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    for (std::size_t i = 0; i < size; ++i) value_ = (value_ ^ bytes[i]) * 1099511628211U;
  }
  std::uint64_t value() const { return value_ == 0 ? 1 : value_; }

 private:
  std::uint64_t value_ = 14695981039346656037U;
};

int take_neighbour(nlmsghdr* header, void* argument) {
  nlattr* attributes[NDA_MAX + 1];
  if (parse<ndmsg>(header, RTM_NEWNEIGH, attributes) == nullptr) return NL_OK;
  const nlattr* link = attributes[NDA_LLADDR];
  if (link != nullptr) {
    static_cast<fingerprint*>(argument)->add(nla_data(link),
                                             static_cast<std::size_t>(nla_len(link)));
  }
  return NL_STOP;
}

// Two homes with 192.168.1.1 differ by their routers' link-layer addresses.
void add_gateway(const socket& s, const happy_netlink_address& gateway, fingerprint& f) {
  if (gateway.family == af_none) return;
  f.add(gateway.bytes, sizeof gateway.bytes);
  ndmsg wanted{};
  wanted.ndm_family = static_cast<std::uint8_t>(gateway.family);
  wanted.ndm_ifindex = static_cast<int>(gateway.interface);
  const message m = make_message(RTM_GETNEIGH, 0, wanted);
  const auto size = static_cast<int>(address_size(gateway.family));
  if (m != nullptr && nla_put(m.get(), NDA_DST, size, gateway.bytes) == 0) {
    ask(s, m.get(), take_neighbour, &f);  // not resolved yet: the addresses have to do
  }
}

// The prefix of the address from which this host speaks to the world, without the host's own bits.
void add_prefix(const happy_netlink_network& n, const happy_netlink_route& r, fingerprint& f) {
  for (std::uint32_t i = 0; i < n.address_count; ++i) {
    const happy_netlink_own_address& a = n.addresses[i];
    if (a.where.family != r.source.family ||
        std::memcmp(a.where.bytes, r.source.bytes, sizeof r.source.bytes) != 0) {
      continue;
    }
    std::uint8_t prefix[16] = {};
    std::memcpy(prefix, a.where.bytes, a.prefix_length / 8);
    f.add(prefix, sizeof prefix);
    return;
  }
}

bool read_default_route(const socket& s, const happy_netlink_address& far, happy_netlink_network& n,
                        happy_netlink_family& family, fingerprint& f) {
  happy_netlink_route r{};
  if (find_route_with(s, far, r) != 0 || r.reachable == 0) return false;
  family.has_default_route = 1;
  family.gateway = r.gateway;
  f.add(&r.source.family, sizeof r.source.family);
  add_gateway(s, r.gateway, f);
  add_prefix(n, r, f);
  return true;
}

}  // namespace

int read_network(happy_netlink_network* out) {
  happy_netlink_network n{};
  socket s;
  if (const int error = s.open(NETLINK_ROUTE)) return error;
  if (const int error = read_addresses(s, n)) return error;
  if (const int error = has_route(AF_INET, n.ipv4.has_route)) return error;
  if (const int error = has_route(AF_INET6, n.ipv6.has_route)) return error;
  socket lookups;
  if (const int error = lookups.open(NETLINK_ROUTE)) return error;
  fingerprint f;
  const bool ipv6 = read_default_route(lookups, far_ipv6, n, n.ipv6, f);
  const bool ipv4 = read_default_route(lookups, far_ipv4, n, n.ipv4, f);
  n.fingerprint = ipv4 || ipv6 ? f.value() : 0;
  *out = n;
  return 0;
}

int find_route(const happy_netlink_address* to, happy_netlink_route* out) {
  if (address_size(to->family) == 0) return EAFNOSUPPORT;
  socket s;
  if (const int error = s.open(NETLINK_ROUTE)) return error;
  return find_route_with(s, *to, *out);
}

}  // namespace happy::netlink
