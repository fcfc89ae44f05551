// The engine's way to libhappy-netlink.so: what the network is, in the kernel's own words.
#pragma once

#include <optional>

#include "resolver/netlink/netlink_abi.h"
#include "shim/abi.h"
#include "shim/base/endpoint.h"

namespace happy {

// Where the library comes from; tests hand over a table of their own instead.
void set_network_host(const happy_host* host);
void set_network_table(const happy_netlink* table);

// The library's table, loaded at the first call; nullptr, for good, where it cannot be had (no libnl, a
// sandbox): whatever needs it is absent then.
//
// Context:  never with the engine's lock held, nor in a signal handler (dlopen). 0.3 ms the first time.
const happy_netlink* load_network();

// The same, if it is there already. Any context.
const happy_netlink* loaded_network();

happy_netlink_address to_netlink(const address& a);
address from_netlink(const happy_netlink_address& a);

}  // namespace happy
