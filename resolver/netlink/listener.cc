#include "resolver/netlink/listener.h"

#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <netinet/icmp6.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "resolver/netlink/request.h"

namespace happy::netlink {
namespace {

// Room for the longest option (255 units of 8 bytes) and what the kernel puts around it.
constexpr std::size_t max_message = 4096;

// Messages in one turn; a network that says more is read on in the next.
constexpr int max_turn = 64;

int listen(std::initializer_list<int> groups, int* fd) {
  socket s;
  if (const int error = s.open(NETLINK_ROUTE)) return error;
  for (const int group : groups) {
    if (nl_socket_add_membership(s.get(), group) < 0) return errno != 0 ? errno : EPERM;
  }
  if (nl_socket_set_nonblocking(s.get()) < 0) return errno;
  const int kept = fcntl(nl_socket_get_fd(s.get()), F_DUPFD_CLOEXEC, 0);
  if (kept < 0) return errno;
  *fd = kept;
  return 0;
}

// The next message from the kernel itself: any process could send one to this socket.
int receive(int fd, std::byte* buffer, std::size_t size, std::size_t& length) {
  for (int i = 0; i < max_turn; ++i) {
    sockaddr_nl from{};
    socklen_t from_length = sizeof from;
    const ssize_t got = recvfrom(fd, buffer, size, MSG_DONTWAIT | MSG_TRUNC,
                                 reinterpret_cast<sockaddr*>(&from), &from_length);
    if (got < 0) return errno;
    const bool whole = static_cast<std::size_t>(got) <= size;
    if (from.nl_pid != 0 || !whole || got < static_cast<ssize_t>(sizeof(nlmsghdr))) continue;
    length = static_cast<std::size_t>(got);
    return 0;
  }
  return EAGAIN;
}

// libnl 3.7 delivers the message but cannot parse it: nduseroptmsg, the option, then attributes.
bool parse_option(nlmsghdr* header, happy_netlink_option& out) {
  nduseroptmsg m{};
  const auto size = static_cast<std::size_t>(nlmsg_datalen(header));
  const auto* data = static_cast<const std::uint8_t*>(nlmsg_data(header));
  if (header->nlmsg_type != RTM_NEWNDUSEROPT || size < sizeof m) return false;
  std::memcpy(&m, data, sizeof m);
  if (m.nduseropt_family != AF_INET6 || m.nduseropt_icmp_type != ND_ROUTER_ADVERT) return false;
  const std::size_t option = m.nduseropt_opts_len;
  if (option > size - sizeof m || option > sizeof out.data) return false;
  out = {};
  out.interface = static_cast<std::uint32_t>(m.nduseropt_ifindex);
  out.size = static_cast<std::uint32_t>(option);
  std::memcpy(out.data, data + sizeof m, option);
  const std::size_t before = std::min(size, sizeof m + NLMSG_ALIGN(option));
  const nlattr* source = nla_find(reinterpret_cast<const nlattr*>(data + before),
                                  static_cast<int>(size - before), NDUSEROPT_SRCADDR);
  if (source != nullptr && nla_len(source) >= static_cast<int>(sizeof out.router))
    std::memcpy(out.router, nla_data(source), sizeof out.router);
  return true;
}

}  // namespace

int open_advertisements(int* fd) { return listen({RTNLGRP_ND_USEROPT}, fd); }

int read_advertisement(int fd, happy_netlink_option* out) {
  alignas(nlmsghdr) std::byte buffer[max_message];
  for (int i = 0; i < max_turn; ++i) {
    std::size_t length = 0;
    if (const int error = receive(fd, buffer, sizeof buffer, length)) return error;
    auto* header = reinterpret_cast<nlmsghdr*>(buffer);
    if (nlmsg_ok(header, static_cast<int>(length)) != 0 && parse_option(header, *out)) return 0;
  }
  return EAGAIN;
}

int open_changes(int* fd) {
  return listen({RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,
                 RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE},
                fd);
}

int read_change(int fd) {
  alignas(nlmsghdr) std::byte buffer[max_message];
  std::size_t length = 0;
  int outcome = EAGAIN;
  for (int i = 0; i < max_turn; ++i) {
    const int error = receive(fd, buffer, sizeof buffer, length);
    if (error == EAGAIN) return outcome;
    if (error != 0 && error != ENOBUFS) return error;
    outcome = 0;
  }
  return outcome;
}

}  // namespace happy::netlink
