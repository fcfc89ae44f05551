// The kernel's message about an option of a router advertisement, RTM_NEWNDUSEROPT, from a stranger's packet, and about
// the links that routers are on. Pure, and without libnl, which delivers such a message (3.7) but cannot parse it.
#pragma once

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "resolver/netlink/netlink_abi.h"

namespace happy {

// The router's address in the attributes behind the option; zeros: none.
inline void find_router(std::span<const std::uint8_t> attributes, happy_netlink_option& out) {
  rtattr head{};
  while (attributes.size() >= sizeof head) {
    std::memcpy(&head, attributes.data(), sizeof head);
    if (head.rta_len < sizeof head || head.rta_len > attributes.size()) return;
    if (head.rta_type == NDUSEROPT_SRCADDR && head.rta_len >= sizeof head + sizeof out.router) {
      std::memcpy(out.router, attributes.data() + sizeof head, sizeof out.router);
      return;
    }
    attributes =
        attributes.subspan(std::min<std::size_t>(RTA_ALIGN(head.rta_len), attributes.size()));
  }
}

// A link that is down or gone. Of such a message, which tells much more, the beginning is enough.
inline bool parse_lost_link(const nlmsghdr& header, std::span<const std::uint8_t> body,
                            happy_netlink_option& out) {
  ifinfomsg about{};
  if (body.size() < sizeof about) return false;
  std::memcpy(&about, body.data(), sizeof about);
  // Of another family it is about a bridge's ports.
  if (about.ifi_family != AF_UNSPEC) return false;
  if (header.nlmsg_type == RTM_NEWLINK && (about.ifi_flags & IFF_RUNNING) != 0) return false;
  out = {};
  out.interface = static_cast<std::uint32_t>(about.ifi_index);
  return true;
}

inline bool parse_option(std::span<const std::uint8_t> body, happy_netlink_option& out) {
  nduseroptmsg about{};
  if (body.size() < sizeof about) return false;
  std::memcpy(&about, body.data(), sizeof about);
  if (about.nduseropt_family != AF_INET6 || about.nduseropt_icmp_type != ND_ROUTER_ADVERT)
    return false;
  const std::size_t size = about.nduseropt_opts_len;
  const auto rest = body.subspan(sizeof about);
  if (size == 0 || size > rest.size() || size > sizeof out.data) return false;
  out = {};
  out.interface = static_cast<std::uint32_t>(about.nduseropt_ifindex);
  out.size = static_cast<std::uint32_t>(size);
  std::copy_n(rest.begin(), size, out.data);
  find_router(rest.subspan(std::min<std::size_t>(NLMSG_ALIGN(size), rest.size())), out);
  return true;
}

// `message` begins with its header: nlmsghdr, nduseroptmsg, the option as it came, attributes. False, and `out` as it
// was, if it is neither that nor about a lost link, or is cut off.
inline bool parse_advertised(std::span<const std::uint8_t> message, happy_netlink_option& out) {
  nlmsghdr header{};
  if (message.size() < NLMSG_HDRLEN) return false;
  std::memcpy(&header, message.data(), sizeof header);
  if (header.nlmsg_len < NLMSG_HDRLEN) return false;
  const auto body = message.subspan(NLMSG_HDRLEN);
  if (header.nlmsg_type == RTM_NEWLINK || header.nlmsg_type == RTM_DELLINK)
    return parse_lost_link(header, body, out);
  const std::size_t length = header.nlmsg_len - NLMSG_HDRLEN;
  return header.nlmsg_type == RTM_NEWNDUSEROPT && length <= body.size() &&
         parse_option(body.first(length), out);
}

}  // namespace happy
