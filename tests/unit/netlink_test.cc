// What the kernel of this machine says through libnl, on the loopback alone: there is one everywhere.

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "resolver/netlink/netlink_abi.h"
#include "resolver/network.h"
#include "shim/base/unique_fd.h"
#include "tests/support/catch.h"

using namespace happy;

namespace {

happy_netlink library() {
  happy_netlink table{};
  REQUIRE(happy_netlink_start(&table) == 0);
  return table;
}

happy_netlink_address ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return to_netlink(make_ipv4(a, b, c, d));
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("netlink: the table says which version it is", "[netlink]") {
  CHECK(library().abi_version == HAPPY_NETLINK_ABI_VERSION);
}

TEST_CASE("netlink: the loopback's address is listed, and counts as none of the network's",
          "[netlink][QUERY-1]") {
  happy_netlink_network network{};
  REQUIRE(library().read_network(&network) == 0);
  bool found = false;
  for (std::uint32_t i = 0; i < network.address_count; ++i) {
    const address a = from_netlink(network.addresses[i].where);
    if (a != make_ipv4(127, 0, 0, 1)) continue;
    found = true;
    CHECK(network.addresses[i].prefix_length == 8);
    CHECK(network.addresses[i].age_ms >= 0);
  }
  CHECK(found);
  CHECK((network.fingerprint != 0) ==
        (network.ipv4.has_default_route != 0 || network.ipv6.has_default_route != 0));
}

TEST_CASE("netlink: an address of this host is reached by itself", "[netlink][NAT64-2]") {
  const happy_netlink_address to = ipv4(127, 0, 0, 1);
  happy_netlink_route route{};
  REQUIRE(library().find_route(&to, &route) == 0);
  CHECK(route.reachable == 1);
  CHECK(route.is_local == 1);
  CHECK(from_netlink(route.source) == make_ipv4(127, 0, 0, 1));
}

TEST_CASE("netlink: no address is no destination", "[netlink]") {
  const happy_netlink_address none{};
  happy_netlink_route route{};
  happy_netlink_path path{};
  CHECK(library().find_route(&none, &route) == EAFNOSUPPORT);
  CHECK(library().find_path(&none, nullptr, &path) == EAFNOSUPPORT);
}

TEST_CASE("netlink: a path that nobody has taken is not known", "[netlink]") {
  const happy_netlink_address to = ipv4(192, 0, 2, 77);
  happy_netlink_path path{};
  const int error = library().find_path(&to, nullptr, &path);
  CHECK((error == ENOENT || error == ENOSYS));  // ENOSYS: a kernel without tcp_metrics
}

TEST_CASE("netlink: listening needs no privilege, hears nothing by itself, and costs a descriptor",
          "[netlink][V6ONLY-3]") {
  const happy_netlink table = library();
  const int before = open_descriptors();
  int fd = -1;
  REQUIRE(table.open_advertisements(&fd) == 0);
  CHECK(open_descriptors() == before + 1);
  CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  happy_netlink_option option{};
  CHECK(table.read_advertisement(fd, &option) == EAGAIN);
  ::close(fd);
  int changes = -1;
  REQUIRE(table.open_changes(&changes) == 0);
  CHECK(table.read_change(changes) == EAGAIN);
  ::close(changes);
}

TEST_CASE("netlink: the questions leave no descriptor behind", "[netlink]") {
  const happy_netlink table = library();
  const int before = open_descriptors();
  happy_netlink_network network{};
  happy_netlink_route route{};
  happy_netlink_path path{};
  const happy_netlink_address to = ipv4(127, 0, 0, 1);
  table.read_network(&network);
  table.find_route(&to, &route);
  table.find_path(&to, nullptr, &path);
  CHECK(open_descriptors() == before);
}
