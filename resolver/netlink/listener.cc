#include "resolver/netlink/listener.h"

#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "resolver/netlink/advertised_option.h"
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

// The next message from the kernel itself, or its beginning: any process could send one to this socket.
int receive(int fd, std::byte* buffer, std::size_t size, std::size_t& length) {
  for (int i = 0; i < max_turn; ++i) {
    sockaddr_nl from{};
    socklen_t from_length = sizeof from;
    const ssize_t got =
        recvfrom(fd, buffer, size, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &from_length);
    if (got < 0) return errno;
    if (from.nl_pid != 0) continue;
    length = static_cast<std::size_t>(got);
    return 0;
  }
  return EAGAIN;
}

}  // namespace

int open_advertisements(int* fd) { return listen({RTNLGRP_ND_USEROPT, RTNLGRP_LINK}, fd); }

int read_advertisement(int fd, happy_netlink_option* out) {
  alignas(nlmsghdr) std::byte buffer[max_message];
  for (int i = 0; i < max_turn; ++i) {
    std::size_t length = 0;
    if (const int error = receive(fd, buffer, sizeof buffer, length)) return error;
    if (parse_advertised({reinterpret_cast<const std::uint8_t*>(buffer), length}, *out)) return 0;
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
