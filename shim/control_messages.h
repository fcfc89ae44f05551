// The control messages of datagrams on a socket that the program takes for an IPv4 one (translated.h). Pure.
#pragma once

#include <sys/socket.h>

#include <cstddef>

#include "shim/base/endpoint.h"

namespace happy {

// All that the kernel gives with one datagram, every option set: 352 bytes.
inline constexpr std::size_t most_control = 384;

// Writes what the kernel has given in `from` (whose buffer is ours) where the program's `to` has room for it; what
// does not fit is cut off as the kernel would, with MSG_CTRUNC. With `own`, IPv6's messages become IPv4's: the
// datagram's own address is told as that, and who told of an ICMP error as `view_of(address)`.
using address_view = address (*)(const address& shown);
void give_control(const msghdr& from, msghdr& to, const address* own, address_view view_of);

// The program's messages for a datagram that leaves by IPv6, in `buffer`; how many bytes. IP_PKTINFO keeps its
// interface, not its address. What does not fit is left out: IPv6 takes no notice of the rest.
std::size_t control_for_ipv6(const msghdr& from, char* buffer, std::size_t size);

}  // namespace happy
