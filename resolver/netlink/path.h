// What the kernel remembers of TCP paths: the generic netlink family `tcp_metrics`.
#pragma once

#include "resolver/netlink/netlink_abi.h"

namespace happy::netlink {

int find_path(const happy_netlink_address* to, const happy_netlink_address* from,
              happy_netlink_path* out);

}  // namespace happy::netlink
