// What the kernel tells whoever listens: options of router advertisements, changes of the network.
#pragma once

#include "resolver/netlink/netlink_abi.h"

namespace happy::netlink {

int open_advertisements(int* fd);
int read_advertisement(int fd, happy_netlink_option* out);
int open_changes(int* fd);
int read_change(int fd);

}  // namespace happy::netlink
