#include "resolver/host_answer.h"

#include <algorithm>
#include <cstring>

#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

answer aliased() {
  answer a;
  a.kind = answer_kind::positive;
  a.addresses.push_back(test::ip("192.0.2.2"));
  a.addresses.push_back(test::ip("192.0.2.1"));
  a.canonical_name = "end.test";
  a.aliases = {"alias.test", "middle.test"};
  return a;
}

// Everything that is pointed to lies inside `buffer`.
bool is_inside(const hostent& host, const char* buffer, std::size_t size) {
  const auto inside = [&](const void* p) {
    return p >= buffer && static_cast<const char*>(p) < buffer + size;
  };
  bool all = inside(host.h_name) && inside(host.h_aliases) && inside(host.h_addr_list);
  for (char** item = host.h_aliases; *item != nullptr; ++item) all = all && inside(*item);
  for (char** item = host.h_addr_list; *item != nullptr; ++item) all = all && inside(*item);
  return all;
}

}  // namespace

TEST_CASE("host_answer: the nameserver's order, the aliases, the name at their end",
          "[host_answer]") {
  alignas(8) char buffer[2048];
  for (std::size_t skipped = 0; skipped < 8; ++skipped) {  // programs' buffers lie anywhere
    hostent host{};
    happy_host_space space{&host, buffer + skipped, 1024, 77, 77};
    REQUIRE(fill(space, host_answer_of(aliased()).value()));
    CHECK(is_inside(host, buffer + skipped, 1024));
    CHECK(host.h_name == std::string("end.test"));
    CHECK(host.h_aliases[0] == std::string("alias.test"));
    CHECK(host.h_aliases[1] == std::string("middle.test"));
    CHECK(host.h_aliases[2] == nullptr);
    CHECK(host.h_addrtype == AF_INET);
    CHECK(host.h_length == 4);
    CHECK(std::memcmp(host.h_addr_list[0], "\xc0\0\2\2", 4) == 0);
    CHECK(std::memcmp(host.h_addr_list[1], "\xc0\0\2\1", 4) == 0);
    CHECK(host.h_addr_list[2] == nullptr);
  }
}

TEST_CASE("host_answer: a buffer that may be short for glibc is left alone", "[host_answer]") {
  char buffer[1024];
  std::memset(buffer, 'x', sizeof buffer);
  hostent host{};
  happy_host_space space{&host, buffer, sizeof buffer, 0, 0};
  answer crowded = aliased();
  for (int n = 3; n < 40; ++n)
    crowded.addresses.push_back(test::ip("192.0.2." + std::to_string(n)));
  CHECK(!fill(space, host_answer_of(crowded).value()));
  CHECK(host.h_name == nullptr);
  CHECK(std::count(buffer, buffer + sizeof buffer, 'x') == 1024);
  space.size = 512;
  CHECK(!has_room(space));
}

TEST_CASE("host_answer: what glibc shows differently is not shown", "[host_answer]") {
  answer a = aliased();
  a.odd_chain = true;
  CHECK(!host_answer_of(a));
  a = aliased();
  a.irregular = true;
  CHECK(!host_answer_of(a));
  a = aliased();
  a.kind = answer_kind::no_data;
  CHECK(!host_answer_of(a));
}

}  // namespace happy
