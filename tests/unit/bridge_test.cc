#include "resolver/bridge.h"

#include <string>
#include <vector>

#include "tests/support/addresses.h"
#include "tests/support/catch.h"

using happy::bridge_table;
using happy::test::ip;

TEST_CASE("bridge: an address hangs on the name alone, and lies inside the pool", "[bridge]") {
  const bridge_table one(251);
  const bridge_table other(251);
  const happy::address a = one.address_for("six.example.com");
  CHECK(a.bytes[0] == 251);
  CHECK(a == other.address_for("Six.Example.COM."));
  CHECK(a != one.address_for("sixx.example.com"));
  CHECK(bridge_table(10).address_for("six.example.com").bytes[0] == 10);
  for (int i = 0; i < 2000; ++i) {
    const happy::address any = one.address_for("name" + std::to_string(i));
    CHECK(any != happy::make_ipv4(251, 0, 0, 0));
    CHECK(any != happy::make_ipv4(251, 255, 255, 255));
  }
}

TEST_CASE("bridge: only what was handed out is known, with the latest endpoints", "[bridge]") {
  bridge_table table(251);
  const happy::address a = table.address_for("six.test");
  CHECK(table.find(a) == nullptr);
  REQUIRE(table.add("six.test", {{.destination = ip("2001:db8::1")}}));
  REQUIRE(table.find(a) != nullptr);
  CHECK(table.find(a)->candidates[0].destination == ip("2001:db8::1"));
  REQUIRE(table.add("SIX.test", {{.destination = ip("2001:db8::2")}}));
  CHECK(table.find(a)->candidates[0].destination == ip("2001:db8::2"));
  CHECK(table.find(ip("192.0.2.1")) == nullptr);
  CHECK(table.find(ip("2001:db8::1")) == nullptr);
}

TEST_CASE("bridge: two names never share an address", "[bridge]") {
  bridge_table table(251);
  std::vector<std::string> names;
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "host" + std::to_string(i);
    if (table.add(name, {})) {
      names.push_back(name);
    } else {
      ++refused;
    }
  }
  CHECK(refused < 10);
  for (const std::string& name : names) {
    REQUIRE(table.find(table.address_for(name)) != nullptr);
    CHECK(table.find(table.address_for(name))->name == name);
  }
}

TEST_CASE("bridge: the oldest of too many names is forgotten", "[bridge]") {
  bridge_table table(251);
  table.add("first", {});
  for (std::size_t i = 0; i < happy::max_bridged_names; ++i) table.add("n" + std::to_string(i), {});
  CHECK(table.find(table.address_for("first")) == nullptr);
  CHECK(table.find(table.address_for("n900")) != nullptr);
}
