// libhappy-netlink.so's side of netlink_abi.h: a table of contents.

#include "resolver/netlink/listener.h"
#include "resolver/netlink/netlink_abi.h"
#include "resolver/netlink/path.h"
#include "resolver/netlink/route.h"

extern "C" __attribute__((visibility("default"))) int happy_netlink_start(happy_netlink* out) {
  using namespace happy::netlink;
  *out = {.abi_version = HAPPY_NETLINK_ABI_VERSION,
          .read_network = read_network,
          .find_route = find_route,
          .find_path = find_path,
          .open_advertisements = open_advertisements,
          .read_advertisement = read_advertisement,
          .open_changes = open_changes,
          .read_change = read_change};
  return 0;
}
