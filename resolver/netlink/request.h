// One question to the kernel over libnl.
#pragma once

#include <netlink/msg.h>
#include <netlink/netlink.h>

#include <cstddef>
#include <memory>

#include "resolver/netlink/netlink_abi.h"

namespace happy::netlink {

inline constexpr int af_none = 0;

// A netlink socket, connected for as long as it lives.
class socket {
 public:
  // An errno, or 0. `protocol`: NETLINK_ROUTE, NETLINK_GENERIC.
  int open(int protocol);

  nl_sock* get() const { return sock_.get(); }

 private:
  struct closer {
    void operator()(nl_sock* s) const { nl_socket_free(s); }
  };
  std::unique_ptr<nl_sock, closer> sock_;
};

struct message_freer {
  void operator()(nl_msg* m) const { nlmsg_free(m); }
};
using message = std::unique_ptr<nl_msg, message_freer>;

// A message of `type` that begins with `header`; null when there is no memory.
template <typename Header>
message make_message(int type, int flags, const Header& header) {
  message m(nlmsg_alloc_simple(type, flags));
  Header copy = header;
  if (m != nullptr && nlmsg_append(m.get(), &copy, sizeof copy, NLMSG_ALIGNTO) < 0) m.reset();
  return m;
}

// What handles one message of the answer. NL_OK: go on, NL_STOP: that was enough.
using handler = int (*)(nlmsghdr* header, void* argument);

// Sends `m` and hands every message of the answer to `handle`. 0, or the errno that the kernel gave.
int ask(const socket& s, nl_msg* m, handler handle, void* argument);

// The address in an attribute of `size` bytes; family 0 if it is none.
happy_netlink_address to_address(int family, const void* data, std::size_t size,
                                 unsigned interface);

// Bytes of an address of `family`; 0: of no address.
std::size_t address_size(int family);

}  // namespace happy::netlink
