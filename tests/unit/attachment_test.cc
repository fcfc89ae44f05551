#include "resolver/attachment.h"

#include <cstring>

#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

using test::ip;

// As the kernel prints them, on a little-endian machine where `gateway` is 192.0.2.1.
constexpr char routes[] =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    "tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n"
    "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
    "eth1\t00000000\t090200C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
    "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";

constexpr char neighbours[] =
    "IP address       HW type     Flags       HW address            Mask     Device\n"
    "192.0.2.10       0x1         0x2         02:00:00:00:00:0a     *        eth0\n"
    "192.0.2.1        0x1         0x2         02:00:00:00:00:01     *        eth0\n"
    "192.0.2.9        0x1         0x0         00:00:00:00:00:00     *        eth1\n";

}  // namespace

TEST_CASE("attachment: the gateway is that of the first default route", "[attachment][SORT-4]") {
  CHECK(default_gateway(routes) == ip("192.0.2.1"));
}

TEST_CASE("attachment: no default route, and what is no such table", "[attachment]") {
  const std::string text = routes;
  const std::size_t heading = text.find('\n') + 1;
  CHECK_FALSE(default_gateway(text.substr(0, heading)));
  CHECK_FALSE(default_gateway(""));
  CHECK_FALSE(default_gateway(text.substr(0, heading) +
                              "ppp0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\n"));
  CHECK_FALSE(default_gateway(text.substr(0, heading) + "eth0\tnonsense\n"));
}

TEST_CASE("attachment: the gateway's hardware, where it is known", "[attachment][SORT-4]") {
  CHECK(hardware_address(neighbours, ip("192.0.2.1")) == "02:00:00:00:00:01");
  CHECK(hardware_address(neighbours, ip("192.0.2.9")).empty());
  CHECK(hardware_address(neighbours, ip("192.0.2.2")).empty());
  CHECK(hardware_address("", ip("192.0.2.1")).empty());
}

}  // namespace happy
