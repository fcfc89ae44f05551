// Addresses, routes and neighbours, as rtnetlink tells them.
#pragma once

#include "resolver/netlink/netlink_abi.h"

namespace happy::netlink {

int read_network(happy_netlink_network* out);
int find_route(const happy_netlink_address* to, happy_netlink_route* out);

}  // namespace happy::netlink
