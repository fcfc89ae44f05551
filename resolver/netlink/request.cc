#include "resolver/netlink/request.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace happy::netlink {
namespace {

constexpr std::size_t ipv4_size = 4;
constexpr std::size_t ipv6_size = 16;

struct answer {
  handler handle;
  void* argument;
  int error = 0;
};

int on_message(nl_msg* m, void* argument) {
  auto& a = *static_cast<answer*>(argument);
  return a.handle(nlmsg_hdr(m), a.argument);
}

// libnl's own codes merge several errnos.
int on_error(sockaddr_nl* /*from*/, nlmsgerr* e, void* argument) {
  static_cast<answer*>(argument)->error = -e->error;
  return NL_STOP;
}

struct callbacks_freer {
  void operator()(nl_cb* c) const { nl_cb_put(c); }
};

}  // namespace

int socket::open(int protocol) {
  sock_.reset(nl_socket_alloc());
  if (sock_ == nullptr) return ENOMEM;
  if (nl_connect(sock_.get(), protocol) < 0) return errno != 0 ? errno : EPROTONOSUPPORT;
  const timeval patience{.tv_sec = 0, .tv_usec = HAPPY_NETLINK_PATIENCE_MS * 1000};
  const int fd = nl_socket_get_fd(sock_.get());
  return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 ? 0 : errno;
}

int ask(const socket& s, nl_msg* m, handler handle, void* argument) {
  if (m == nullptr) return ENOMEM;
  const std::unique_ptr<nl_cb, callbacks_freer> callbacks(nl_cb_alloc(NL_CB_DEFAULT));
  if (callbacks == nullptr) return ENOMEM;
  answer a{handle, argument};
  nl_cb_set(callbacks.get(), NL_CB_VALID, NL_CB_CUSTOM, on_message, &a);
  nl_cb_err(callbacks.get(), NL_CB_CUSTOM, on_error, &a);
  nl_socket_disable_auto_ack(s.get());
  if (nl_send_auto(s.get(), m) < 0) return errno != 0 ? errno : EIO;
  const int received = nl_recvmsgs(s.get(), callbacks.get());
  if (a.error != 0) return a.error;
  return received < 0 ? EIO : 0;
}

std::size_t address_size(int family) {
  if (family == AF_INET) return ipv4_size;
  return family == AF_INET6 ? ipv6_size : 0;
}

happy_netlink_address to_address(int family, const void* data, std::size_t size,
                                 unsigned interface) {
  happy_netlink_address a{};
  const std::size_t wanted = address_size(family);
  if (wanted == 0 || size < wanted) return a;
  a.family = family;
  a.interface = interface;
  std::memcpy(a.bytes, data, wanted);
  return a;
}

}  // namespace happy::netlink
