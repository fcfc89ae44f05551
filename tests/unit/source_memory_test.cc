#include "resolver/source_memory.h"

#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using test::ip;
using test::libc_functions;
using test::with_functions;

constexpr time_point begin{std::chrono::hours(1)};

own_address_list some_addresses() {
  return std::make_shared<const std::vector<own_address>>(
      std::vector<own_address>{{.where = ip("192.0.2.7")}});
}

int sockets_made;

}  // namespace

TEST_CASE("source_memory: what was kept serves for source_lifetime after the first of it",
          "[source_memory][SORT-1]") {
  source_memory memory;
  memory.keep(ip("192.0.2.1"), ip("192.0.2.7"), begin);
  const time_point later = begin + source_lifetime / 2;
  memory.keep(ip("2001:db8::1"), ip("2001:db8::7"), later);
  memory.keep_own_addresses(some_addresses(), later);
  const time_point last = begin + source_lifetime - milliseconds(1);
  CHECK(memory.find(ip("192.0.2.1"), last) == ip("192.0.2.7"));
  CHECK(memory.find(ip("2001:db8::1"), last) == ip("2001:db8::7"));
  CHECK(memory.own_addresses(last) != nullptr);
  CHECK_FALSE(memory.find(ip("192.0.2.2"), last));
  CHECK_FALSE(memory.find(ip("2001:db8::1"), begin + source_lifetime));
  CHECK(memory.own_addresses(begin + source_lifetime) == nullptr);
}

TEST_CASE("source_memory: a scope is part of an address", "[source_memory]") {
  source_memory memory;
  address one = ip("fe80::1");
  one.scope = 1;
  address two = one;
  two.scope = 2;
  memory.keep(one, ip("fe80::7"), begin);
  CHECK_FALSE(memory.find(two, begin));
}

TEST_CASE("source_memory: beyond max_known_sources nothing more is kept, and nothing lost",
          "[source_memory]") {
  source_memory memory;
  for (std::size_t i = 0; i <= max_known_sources; ++i)
    memory.keep(ip("192.0.2." + std::to_string(i)), ip("192.0.2.200"), begin);
  CHECK(memory.find(ip("192.0.2.0"), begin));
  CHECK_FALSE(memory.find(ip("192.0.2." + std::to_string(max_known_sources)), begin));
}

TEST_CASE("source_memory: the kernel is asked once for a burst, and again when the network changes",
          "[source_memory]") {
  happy_real functions = libc_functions();
  functions.socket = [](int domain, int type, int protocol) {
    ++sockets_made;
    return ::socket(domain, type, protocol);
  };
  static timespec now{.tv_sec = 1000, .tv_nsec = 0};
  functions.clock_gettime = [](clockid_t, timespec* to) {
    *to = now;
    return 0;
  };
  with_functions use(functions);
  forget_sources();
  sockets_made = 0;
  const auto find = [](kernel_said said = kernel_said::lately) {
    candidate c;
    c.destination = ip("127.0.0.2");
    source_finder(said).find(c);
    return c.has_source && c.source == ip("127.0.0.1");
  };
  CHECK(find());
  CHECK(find());
  CHECK(sockets_made == 1);
  forget_sources();
  CHECK(find());
  CHECK(sockets_made == 2);
  now.tv_sec += 1;
  CHECK(find());
  CHECK(sockets_made == 3);
  CHECK(find(kernel_said::now));
  CHECK(sockets_made == 4);
  forget_sources();  // of a clock that stood still
}

}  // namespace happy
