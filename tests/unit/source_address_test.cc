#include "resolver/source_address.h"

#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "resolver/own_addresses.h"
#include "resolver/source_memory.h"

#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using test::ip;
using test::libc_functions;
using test::open_descriptors;
using test::with_functions;

candidate to(const std::string& destination) {
  candidate c;
  c.destination = ip(destination);
  return c;
}

int sockets_made;

int counted_socket(int domain, int type, int protocol) {
  ++sockets_made;
  return ::socket(domain, type, protocol);
}

}  // namespace

TEST_CASE("source_address: loopback is reached from itself", "[source_address][SORT-1]") {
  with_functions functions;
  source_probe probe;
  candidate c = to("127.0.0.1");
  probe.probe(c, 80);
  REQUIRE(c.has_source);
  CHECK(c.source == ip("127.0.0.1"));
  CHECK(is_own(c));
}

TEST_CASE("source_address: a destination elsewhere in 127.0.0.0/8 has another source",
          "[source_address][SORT-1]") {
  with_functions functions;
  source_probe probe;
  candidate c = to("127.0.0.2");
  probe.probe(c, 0);
  REQUIRE(c.has_source);
  CHECK(c.source == ip("127.0.0.1"));
  CHECK_FALSE(is_own(c));
}

TEST_CASE("source_address: one socket per family serves every probe, and none is left",
          "[source_address]") {
  happy_real functions = libc_functions();
  functions.socket = counted_socket;
  with_functions use(functions);
  sockets_made = 0;
  const int before = open_descriptors();
  {
    source_probe probe;
    for (int i = 0; i < 10; ++i) {
      for (const char* text : {"127.0.0.1", "::1", "127.0.0.2", "255.255.255.255", "ff02::1"}) {
        candidate c = to(text);
        probe.probe(c, 80);
      }
    }
    CHECK(sockets_made <= 2);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("source_address: a failed probe does not spoil the next one", "[source_address]") {
  with_functions functions;
  source_probe probe;
  candidate broadcast = to("255.255.255.255");  // EACCES without SO_BROADCAST
  broadcast.has_source = true;
  probe.probe(broadcast, 80);
  CHECK_FALSE(broadcast.has_source);
  candidate loopback = to("127.0.0.1");
  probe.probe(loopback, 80);
  CHECK(loopback.source == ip("127.0.0.1"));
}

TEST_CASE("source_address: any error is no source, and errno stays", "[source_address]") {
  happy_real functions = libc_functions();
  SECTION("socket") {
    functions.socket = [](int, int, int) {
      errno = EMFILE;
      return -1;
    };
  }
  SECTION("connect") {
    functions.connect = [](int, const sockaddr*, socklen_t) {
      errno = ENETUNREACH;
      return -1;
    };
  }
  SECTION("getsockname") {
    functions.getsockname = [](int, sockaddr*, socklen_t*) {
      errno = EBADF;
      return -1;
    };
  }
  with_functions use(functions);
  source_probe probe;
  candidate c = to("127.0.0.1");
  errno = ENOTTY;
  probe.probe(c, 80);
  CHECK_FALSE(c.has_source);
  CHECK(errno == ENOTTY);
}

// A netlink dump as the kernel writes it.
class dump {
 public:
  dump& add(const char* text, std::uint8_t prefix_length, std::uint8_t flags, unsigned interface) {
    const happy::address where = ip(text);
    struct {
      nlmsghdr header;
      ifaddrmsg about;
      rtattr attribute;
      std::uint8_t bytes[16];
    } message{};
    const std::size_t size = where.family == happy::family::ipv4 ? 4 : 16;
    message.header.nlmsg_len =
        static_cast<std::uint32_t>(offsetof(decltype(message), bytes) + size);
    message.header.nlmsg_type = RTM_NEWADDR;
    message.about.ifa_family = static_cast<std::uint8_t>(size == 4 ? AF_INET : AF_INET6);
    message.about.ifa_prefixlen = prefix_length;
    message.about.ifa_flags = flags;
    message.about.ifa_index = interface;
    message.attribute.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(size));
    message.attribute.rta_type = IFA_ADDRESS;
    std::memcpy(message.bytes, where.bytes.data(), size);
    append(&message, message.header.nlmsg_len);
    return *this;
  }

  void end() {
    const nlmsghdr done{.nlmsg_len = sizeof(nlmsghdr),
                        .nlmsg_type = NLMSG_DONE,
                        .nlmsg_flags = 0,
                        .nlmsg_seq = 0,
                        .nlmsg_pid = 0};
    append(&done, sizeof done);
  }

  // What recvfrom() gives while a test runs.
  static inline std::vector<std::uint8_t> bytes;

 private:
  static void append(const void* data, std::size_t size) {
    const auto* from = static_cast<const std::uint8_t*>(data);
    bytes.insert(bytes.end(), from, from + size);
    bytes.resize(NLMSG_ALIGN(bytes.size()));
  }
};

ssize_t give_dump(int, void* to, size_t room, int, sockaddr*, socklen_t*) {
  const std::size_t size = std::min(room, dump::bytes.size());
  std::memcpy(to, dump::bytes.data(), size);
  return static_cast<ssize_t>(size);
}

candidate from(const char* destination, const char* source) {
  candidate c = to(destination);
  c.source = ip(source);
  c.has_source = true;
  return c;
}

TEST_CASE("source_address: what rules 3, 4, 7 and 9 look at comes from the list of own addresses",
          "[source_address][SORT-1]") {
  happy_real functions = libc_functions();
  functions.recvfrom = give_dump;
  with_functions use(functions);
  forget_sources();
  dump::bytes.clear();
  dump kernel;
  kernel.add("127.0.0.1", 8, 0, 1)
      .add("192.0.2.7", 24, IFA_F_DEPRECATED, 1)
      .add("198.51.100.7", 28, 0, 1);
  std::vector<candidate> list = {from("192.0.2.1", "192.0.2.7"), from("127.0.0.9", "127.0.0.9"),
                                 from("2001:db8::1", "2001:db8::7"),
                                 from("2001:db8::2", "2001:db8::8"),
                                 from("203.0.113.1", "203.0.113.9")};
  const auto all = [&](auto property) {
    std::vector<int> values;
    for (const candidate& c : list) values.push_back(static_cast<int>(c.*property));
    return values;
  };
  SECTION("flags, lengths, and what is not listed counts as a tunnel") {
    kernel.add("2001:db8::7", 64, IFA_F_HOMEADDRESS, 1)
        .add("2001:db8::8", 64, IFA_F_OPTIMISTIC, 1)
        .end();
    describe_sources(list);
    CHECK(all(&candidate::source_deprecated) == std::vector{1, 0, 0, 1, 0});
    CHECK(all(&candidate::source_home) == std::vector{0, 0, 1, 0, 0});
    CHECK(all(&candidate::source_prefix_length) == std::vector{24, 8, 64, 64, 32});
    CHECK(all(&candidate::source_tunnelled) == std::vector{0, 0, 0, 0, 1});
  }
  SECTION("a host without IPv6 addresses: glibc keeps nothing of the list") {
    kernel.add("::1", 128, 0, 1).end();
    describe_sources(list);
    CHECK(all(&candidate::source_deprecated) == std::vector{0, 0, 0, 0, 0});
    CHECK(all(&candidate::source_prefix_length) == std::vector{32, 32, 32, 32, 32});
  }
  SECTION("a dump that breaks off says nothing") {
    kernel.add("2001:db8::7", 64, 0, 1);
    dump::bytes.resize(dump::bytes.size() - 20);
    functions.recvfrom = [](int fd, void* to, size_t room, int flags, sockaddr* a, socklen_t* l) {
      const ssize_t size = give_dump(fd, to, room, flags, a, l);
      dump::bytes.clear();
      return size;
    };
    describe_sources(list);
    CHECK(all(&candidate::source_deprecated) == std::vector{0, 0, 0, 0, 0});
  }
  SECTION("nothing is asked where all go out from one IPv6 address") {
    list = {from("2001:db8::1", "2001:db8::7"), from("2001:db8::2", "2001:db8::7"),
            to("192.0.2.1")};
    kernel.add("2001:db8::7", 64, IFA_F_DEPRECATED, 1).end();
    describe_sources(list);
    CHECK(all(&candidate::source_deprecated) == std::vector{0, 0, 0});
  }
}

TEST_CASE("source_address: own addresses are those of the kernel", "[source_address][SORT-1]") {
  with_functions functions;
  const std::vector<happy::own_address> own = happy::own_addresses();
  const auto loopback = std::find_if(own.begin(), own.end(), [](const happy::own_address& a) {
    return a.where == ip("127.0.0.1");
  });
  REQUIRE(loopback != own.end());
  CHECK(loopback->prefix_length == 8);
  CHECK(loopback->interface == if_nametoindex("lo"));
  CHECK_FALSE(loopback->deprecated);
  CHECK_FALSE(happy::is_tunnel(loopback->interface));
  CHECK_FALSE(happy::is_tunnel(~0u));
}

}  // namespace happy
