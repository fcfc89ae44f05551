#include "resolver/source_address.h"

#include <ifaddrs.h>

#include <bit>

namespace happy {
namespace {

// More addresses than any host has on purpose; ends the walk should the list be endless.
constexpr int max_interface_addresses = 4096;

// glibc looks the source up in its list of interface addresses, and 127.0.0.0/8 as 127.0.0.1,
// because a source there need not be an interface's address.
in_addr_t listed_source(const address& source) {
  in_addr in;
  std::memcpy(&in, source.bytes.data(), sizeof in);
  return source.bytes[0] == 127 ? htonl(INADDR_LOOPBACK) : in.s_addr;
}

void find_prefix_length(candidate& c, const ifaddrs* interfaces) {
  const in_addr_t wanted = listed_source(c.source);
  int left = max_interface_addresses;
  for (const ifaddrs* i = interfaces; i != nullptr && left > 0; i = i->ifa_next, --left) {
    if (i->ifa_addr == nullptr || i->ifa_netmask == nullptr || i->ifa_addr->sa_family != AF_INET)
      continue;
    sockaddr_in own;
    sockaddr_in mask;
    std::memcpy(&own, i->ifa_addr, sizeof own);
    std::memcpy(&mask, i->ifa_netmask, sizeof mask);
    if (own.sin_addr.s_addr != wanted) continue;
    c.source_prefix_length = static_cast<std::uint8_t>(std::popcount(mask.sin_addr.s_addr));
    return;
  }
}

bool needs_prefix_length(const candidate& c) {
  return c.has_source && c.destination.family == family::ipv4;
}

}  // namespace

// A UDP socket's connect() is a route lookup; on a socket that is connected already it is a new one
// that may keep the old source, hence the disconnect.
bool source_probe::connect_socket(unique_fd& fd, const socket_address& to) {
  if (!fd.valid()) {
    fd.reset(real->socket(to.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_IP));
    if (!fd.valid()) return false;
  } else {
    const sockaddr disconnect{AF_UNSPEC, {}};
    real->connect(fd.get(), &disconnect, sizeof disconnect);
  }
  return real->connect(fd.get(), to.get(), to.length) == 0;
}

void source_probe::probe(candidate& c, std::uint16_t port) {
  errno_saver keep;
  c.has_source = false;
  unique_fd& fd = sockets_[c.destination.family == family::ipv4 ? 0 : 1];
  if (!connect_socket(fd, to_sockaddr({c.destination, port}))) return;

  socket_address own;
  own.length = sizeof own.storage;
  endpoint source;
  if (real->getsockname(fd.get(), own.get(), &own.length) != 0) return;
  if (!from_sockaddr(own.get(), own.length, source)) return;
  c.source = source.address;
  c.has_source = true;
}

void find_prefix_lengths(std::span<candidate> list) {
  int in_need = 0;
  for (const candidate& c : list) in_need += needs_prefix_length(c) ? 1 : 0;
  if (in_need < 2) return;

  errno_saver keep;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return;
  for (candidate& c : list) {
    if (needs_prefix_length(c)) find_prefix_length(c, interfaces);
  }
  freeifaddrs(interfaces);
}

bool is_own(const candidate& c) { return c.has_source && c.source.bytes == c.destination.bytes; }

}  // namespace happy
