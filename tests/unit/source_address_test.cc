#include "resolver/source_address.h"

#include <ifaddrs.h>

#include <vector>

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

TEST_CASE("source_address: prefix lengths come from the interfaces", "[source_address][SORT-1]") {
  with_functions functions;
  source_probe probe;
  std::vector<candidate> list = {to("127.0.0.1"), to("127.0.0.2"), to("192.0.2.1")};
  probe.probe(list[0], 0);
  probe.probe(list[1], 0);
  SECTION("for two destinations with a source") {
    find_prefix_lengths(list);
    CHECK(list[0].source_prefix_length == 8);
    CHECK(list[1].source_prefix_length == 8);
    CHECK(list[2].source_prefix_length == 32);
  }
  SECTION("for fewer nothing is asked") {
    list[1].has_source = false;
    find_prefix_lengths(list);
    CHECK(list[0].source_prefix_length == 32);
  }
}

}  // namespace happy
