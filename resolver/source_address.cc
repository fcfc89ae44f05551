#include "resolver/source_address.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "resolver/own_addresses.h"
#include "resolver/source_memory.h"

namespace happy {
namespace {

// glibc keeps IPv4 addresses mapped into IPv6.
int compare_addresses(const void* a, const void* b) {
  const address left = mapped(static_cast<const own_address*>(a)->where);
  const address right = mapped(static_cast<const own_address*>(b)->where);
  return std::memcmp(left.bytes.data(), right.bytes.data(), left.bytes.size());
}

// As glibc does it, because of several of one address (link-local ones on several interfaces) any may be found.
own_address_list sorted_own_addresses(kernel_said said) {
  if (said == kernel_said::lately) {
    if (own_address_list known = recent_own_addresses()) return known;
  }
  std::vector<own_address> own = own_addresses();
  if (!own.empty()) std::qsort(own.data(), own.size(), sizeof(own_address), compare_addresses);
  const bool any = !own.empty();
  auto list = std::make_shared<const std::vector<own_address>>(std::move(own));
  if (any) note_own_addresses(list);
  return list;
}

// glibc looks up 127.0.0.0/8 as 127.0.0.1, because a source there need not be an interface's address.
const own_address* find(std::span<const own_address> sorted, const address& source) {
  const bool loopback = source.family == family::ipv4 && source.bytes[0] == 127;
  const own_address wanted{.where = loopback ? make_ipv4(127, 0, 0, 1) : source};
  return static_cast<const own_address*>(
      std::bsearch(&wanted, sorted.data(), sorted.size(), sizeof(own_address), compare_addresses));
}

bool is_other_than_loopback(const own_address& a) {
  constexpr std::array<std::uint8_t, 16> loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return a.where.family == family::ipv6 && a.where.bytes != loopback;
}

// All from one IPv6 address: what is true of one is true of all.
bool can_differ(std::span<const candidate> list) {
  const candidate* first = nullptr;
  for (const candidate& c : list) {
    if (!c.has_source) continue;
    if (first != nullptr && (c.source.family == family::ipv4 || c.source != first->source))
      return true;
    first = &c;
  }
  return false;
}

constexpr unsigned no_interface = 0;

unsigned interface_of(std::span<const own_address> own, const candidate& c) {
  const own_address* found = find(own, c.source);
  return found == nullptr ? no_interface : found->interface;
}

void find_tunnels(std::span<candidate> list, std::span<const own_address> own) {
  for (candidate& c : list) {
    if (!c.has_source) continue;
    const unsigned through = interface_of(own, c);
    c.source_tunnelled = through == no_interface || is_tunnel(through);
  }
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

// glibc keeps nothing of what it has read where no IPv6 address but the loopback's is, and takes what it
// does not find for a tunnel.
void describe_sources(std::span<candidate> list, kernel_said said) {
  if (!can_differ(list)) return;
  const own_address_list sorted = sorted_own_addresses(said);
  const std::vector<own_address>& own = *sorted;
  if (std::none_of(own.begin(), own.end(), is_other_than_loopback)) return;
  bool several_interfaces = false;
  unsigned first = ~0u;
  for (candidate& c : list) {
    if (!c.has_source) continue;
    const own_address* found = find(own, c.source);
    c.source_deprecated = found != nullptr && found->deprecated;
    c.source_home = found != nullptr && found->home;
    c.source_prefix_length = found != nullptr ? found->prefix_length : 32;
    const unsigned through = interface_of(own, c);
    if (first == ~0u) first = through;
    several_interfaces = several_interfaces || through != first;
  }
  if (several_interfaces) find_tunnels(list, own);
}

bool is_own(const candidate& c) { return c.has_source && c.source.bytes == c.destination.bytes; }

}  // namespace happy
