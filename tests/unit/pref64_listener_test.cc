// Router advertisements as the kernel tells them: RFC 8781.

#include "resolver/pref64_listener.h"

#include <linux/netlink.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "resolver/clock.h"
#include "resolver/netlink/advertised_option.h"
#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using test::ip;
using test::open_descriptors;
using test::with_functions;
using bytes = std::vector<std::uint8_t>;

template <typename T>
void append(bytes& to, const T& value) {
  const std::size_t before = to.size();
  to.resize(before + sizeof value);
  std::memcpy(to.data() + before, &value, sizeof value);
}

const bytes some_option = {38, 2, 7, 8, 0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0};

struct told {
  std::uint16_t type = RTM_NEWNDUSEROPT;
  std::uint8_t family = AF_INET6;
  std::uint8_t icmp_type = ND_ROUTER_ADVERT;
  bytes option = some_option;
  const char* router = "fe80::1";  // nullptr: not said
};

// As the kernel writes it.
bytes message(const told& t) {
  bytes body;
  nduseroptmsg about{};
  about.nduseropt_family = t.family;
  about.nduseropt_opts_len = static_cast<unsigned short>(t.option.size());
  about.nduseropt_ifindex = 7;
  about.nduseropt_icmp_type = t.icmp_type;
  append(body, about);
  body.insert(body.end(), t.option.begin(), t.option.end());
  body.resize(NLMSG_ALIGN(body.size()));
  if (t.router != nullptr) {
    append(body, rtattr{.rta_len = 20, .rta_type = NDUSEROPT_SRCADDR});
    append(body, ip(t.router).bytes);
  }
  bytes whole;
  append(whole, nlmsghdr{.nlmsg_len = static_cast<std::uint32_t>(NLMSG_HDRLEN + body.size()),
                         .nlmsg_type = t.type,
                         .nlmsg_flags = 0,
                         .nlmsg_seq = 0,
                         .nlmsg_pid = 0});
  whole.insert(whole.end(), body.begin(), body.end());
  return whole;
}

bytes bytes_of(const address& a) { return {a.bytes.begin(), a.bytes.end()}; }

}  // namespace

TEST_CASE("router's option: as it came, with who sent it where", "[pref64][V6ONLY-3]") {
  happy_netlink_option out{};
  REQUIRE(parse_advertised(message({}), out));
  CHECK(out.interface == 7);
  CHECK(bytes(out.data, out.data + out.size) == some_option);
  CHECK(bytes(out.router, out.router + 16) == bytes_of(ip("fe80::1")));
  REQUIRE(parse_advertised(message({.router = nullptr}), out));
  CHECK(bytes(out.router, out.router + 16) == bytes(16, 0));
}

TEST_CASE("router's option: cut off anywhere it is none, and nothing is written", "[pref64]") {
  const bytes whole = message({});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    happy_netlink_option out{};
    out.interface = 99;
    INFO(size);
    CHECK_FALSE(parse_advertised({whole.data(), size}, out));
    CHECK(out.interface == 99);
  }
}

TEST_CASE("router's option: a link that is down or gone, of which the beginning is enough",
          "[pref64]") {
  const auto link = [](std::uint16_t type, unsigned flags, std::uint8_t family = AF_UNSPEC) {
    ifinfomsg about{};
    about.ifi_family = family;
    about.ifi_index = 5;
    about.ifi_flags = flags;
    bytes whole;
    append(whole, nlmsghdr{.nlmsg_len = 1500,
                           .nlmsg_type = type,
                           .nlmsg_flags = 0,
                           .nlmsg_seq = 0,
                           .nlmsg_pid = 0});
    append(whole, about);
    return whole;
  };
  happy_netlink_option out{};
  out.size = 99;
  REQUIRE(parse_advertised(link(RTM_NEWLINK, IFF_UP), out));
  CHECK((out.interface == 5 && out.size == 0));
  CHECK(parse_advertised(link(RTM_DELLINK, IFF_UP | IFF_RUNNING), out));
  CHECK_FALSE(parse_advertised(link(RTM_NEWLINK, IFF_UP | IFF_RUNNING), out));
  CHECK_FALSE(parse_advertised(link(RTM_DELLINK, 0, AF_BRIDGE), out));
  bytes cut = link(RTM_DELLINK, 0);
  cut.pop_back();
  CHECK_FALSE(parse_advertised(cut, out));
}

TEST_CASE("router's option: other messages, and lengths that lie", "[pref64]") {
  happy_netlink_option out{};
  CHECK_FALSE(parse_advertised(message({.type = RTM_NEWADDR}), out));
  CHECK_FALSE(parse_advertised(message({.family = AF_INET}), out));
  CHECK_FALSE(parse_advertised(message({.icmp_type = ND_ROUTER_SOLICIT}), out));
  CHECK_FALSE(
      parse_advertised(message({.option = bytes(300, 0)}), out));  // longer than options are
  bytes lying = message({.router = nullptr});
  lying[NLMSG_HDRLEN + 2] = 200;  // opts_len, beyond the message
  CHECK_FALSE(parse_advertised(lying, out));
  for (const int length : {0, 3, 4, 21, 255}) {  // of the attribute: no router, no harm
    bytes odd = message({});
    odd[odd.size() - 20] = static_cast<std::uint8_t>(length);
    INFO(length);
    CHECK(parse_advertised(odd, out));
    CHECK(bytes(out.router, out.router + 16) == bytes(16, 0));
  }
}

TEST_CASE("listener: needs no privilege, is out of the program's way, and leaves nothing behind",
          "[pref64][V6ONLY-3]") {
  with_functions functions;
  const int before = open_descriptors();
  const int lowest = dup(0);
  close(lowest);
  {
    pref64_listener listener;
    CHECK_FALSE(listener.is_open());
    REQUIRE(listener.open());
    CHECK(open_descriptors() == before + 1);
    const int next = dup(0);
    CHECK(next == lowest);
    close(next);
    prefix_table table;
    listener.hear(table, clock_now());
    CHECK(table.current(clock_now()).empty());
    CHECK(listener.is_open());

    // The process's own number stays free for the program's.
    const int program = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    sockaddr_nl own{};
    own.nl_family = AF_NETLINK;
    own.nl_pid = static_cast<std::uint32_t>(getpid());
    CHECK(bind(program, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0);
    close(program);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("listener: one whose number the program has taken for something else is left alone",
          "[pref64]") {
  with_functions functions;
  pref64_listener listener;
  REQUIRE(listener.open());
  int taken = -1;
  for (int fd = 0; fd < 256; ++fd) {
    sockaddr_nl own{};
    socklen_t length = sizeof own;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
        own.nl_family == AF_NETLINK)
      taken = fd;
  }
  REQUIRE(taken >= 0);
  const int other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  REQUIRE(dup2(other, taken) == taken);
  prefix_table table;
  listener.hear(table, clock_now());
  CHECK_FALSE(listener.is_open());
  CHECK(fcntl(taken, F_GETFD) >= 0);
  close(taken);
  close(other);
}

}  // namespace happy
