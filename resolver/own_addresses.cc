#include "resolver/own_addresses.h"

#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>

#include <cstring>

#include "shim/base/guards.h"
#include "shim/base/real_functions.h"
#include "shim/base/unique_fd.h"

namespace happy {
namespace {

// The kernel fills no more of a message than the reader has shown to have room for.
constexpr std::size_t message_bytes = 16 * 1024;
// Each brings an address at least.
constexpr std::size_t most_messages = max_own_addresses;

bool ask(int netlink) {
  struct {
    nlmsghdr header;
    ifaddrmsg wanted;
  } request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_GETADDR;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.wanted.ifa_family = AF_UNSPEC;
  return send(netlink, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request);
}

// IFA_ADDRESS, of `size` bytes, or nullptr.
const void* find_address(const nlmsghdr& message, std::size_t size) {
  const auto* about = static_cast<const ifaddrmsg*>(NLMSG_DATA(&message));
  auto left = static_cast<int>(message.nlmsg_len - NLMSG_LENGTH(sizeof(ifaddrmsg)));
  for (const rtattr* item = IFA_RTA(about); RTA_OK(item, left); item = RTA_NEXT(item, left)) {
    if (item->rta_type == IFA_ADDRESS && RTA_PAYLOAD(item) >= size) return RTA_DATA(item);
  }
  return nullptr;
}

void append(std::vector<own_address>& list, const nlmsghdr& message) {
  if (message.nlmsg_type != RTM_NEWADDR || message.nlmsg_len < NLMSG_LENGTH(sizeof(ifaddrmsg)))
    return;
  const auto* about = static_cast<const ifaddrmsg*>(NLMSG_DATA(&message));
  if (about->ifa_family != AF_INET && about->ifa_family != AF_INET6) return;
  own_address own;
  own.where.family = about->ifa_family == AF_INET ? family::ipv4 : family::ipv6;
  const std::size_t size = about->ifa_family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
  const void* bytes = find_address(message, size);
  if (bytes == nullptr) return;
  std::memcpy(own.where.bytes.data(), bytes, size);
  own.prefix_length = about->ifa_prefixlen;
  own.deprecated = (about->ifa_flags & (IFA_F_DEPRECATED | IFA_F_OPTIMISTIC)) != 0;
  own.home = (about->ifa_flags & IFA_F_HOMEADDRESS) != 0;
  own.interface = about->ifa_index;
  list.push_back(own);
}

enum class part { more, last, broken };

part read_part(int netlink, std::vector<own_address>& list) {
  alignas(nlmsghdr) std::uint8_t buffer[message_bytes];
  const ssize_t length =
      real->recvfrom(netlink, buffer, sizeof buffer, MSG_TRUNC, nullptr, nullptr);
  if (length <= 0 || static_cast<std::size_t>(length) > sizeof buffer) return part::broken;
  auto left = static_cast<unsigned>(length);
  for (auto* message = reinterpret_cast<const nlmsghdr*>(buffer); NLMSG_OK(message, left);
       message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type == NLMSG_DONE) return part::last;
    if (message->nlmsg_type == NLMSG_ERROR) return part::broken;
    if (list.size() < max_own_addresses) append(list, *message);
  }
  return part::more;
}

}  // namespace

std::vector<own_address> own_addresses() {
  errno_saver keep;
  const unique_fd netlink(real->socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!netlink.valid() || !ask(netlink.get())) return {};
  std::vector<own_address> list;
  for (std::size_t i = 0; i < most_messages; ++i) {
    const part read = read_part(netlink.get(), list);
    if (read == part::last) return list;
    if (read == part::broken) break;
  }
  return {};
}

bool is_tunnel(unsigned interface) {
  errno_saver keep;
  const unique_fd any(real->socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  request.ifr_ifindex = static_cast<int>(interface);
  if (!any.valid() || ioctl(any.get(), SIOCGIFNAME, &request) != 0) return false;
  if (ioctl(any.get(), SIOCGIFHWADDR, &request) != 0) return false;
  const unsigned kind = request.ifr_hwaddr.sa_family;
  return kind == ARPHRD_TUNNEL || kind == ARPHRD_TUNNEL6 || kind == ARPHRD_SIT;
}

}  // namespace happy
