#include "racer/plan.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/race_script.h"

namespace {

// Endpoints by short names: "6a" is 2001:db8::a, "4b" is 192.0.2.11.
happy::endpoint by_name(const std::string& name) {
  const std::string last = name.substr(1);
  return happy::test::parse_endpoint(
      name[0] == '6' ? "2001:db8::" + last
                     : "192.0.2." + std::to_string(std::stoi(last, nullptr, 16)));
}

std::vector<happy::endpoint> by_names(const std::vector<std::string>& names) {
  std::vector<happy::endpoint> list;
  for (const std::string& n : names) list.push_back(by_name(n));
  return list;
}

// "|" separates groups.
std::vector<happy::endpoint> planned(const std::vector<std::string>& sorted,
                                     const std::string& named, int count = 1) {
  std::vector<happy::listed_endpoint> list;
  std::uint32_t group = 0;
  for (const std::string& name : sorted) {
    if (name == "|")
      ++group;
    else
      list.push_back({.where = by_name(name), .group = group});
  }
  const happy::endpoint_list result = happy::plan(list, by_name(named), count);
  std::vector<happy::endpoint> order;
  for (const happy::listed_endpoint& e : result) order.push_back(e.where);
  return order;
}

}  // namespace

TEST_CASE("plan: families alternate from the second place on", "[plan][SORT-6]") {
  // "Whichever address family is first in the list should be followed by an endpoint of the other
  // address family."
  CHECK(planned({"6a", "6b", "6c", "4a", "4b"}, "6a") == by_names({"6a", "4a", "6b", "4b", "6c"}));
  CHECK(planned({"4a", "4b", "6a"}, "4a") == by_names({"4a", "6a", "4b"}));
}

TEST_CASE("plan: the preferred address family count", "[plan][SORT-7][CONFIG-1][V2-2]") {
  CHECK(planned({"6a", "6b", "6c", "4a", "4b"}, "6a", 2) ==
        by_names({"6a", "6b", "4a", "6c", "4b"}));
  CHECK(planned({"6a", "4a"}, "6a", 5) == by_names({"6a", "4a"}));
}

TEST_CASE("plan: the endpoint that the program named comes first, the rest keep their order",
          "[plan]") {
  CHECK(planned({"6a", "6b", "4a"}, "4a") == by_names({"4a", "6a", "6b"}));
  CHECK(planned({"6a", "6b", "4a"}, "6b") == by_names({"6b", "4a", "6a"}));
}

TEST_CASE("plan: the named endpoint need not be listed", "[plan]") {
  CHECK(planned({"6a", "4a"}, "6f") == by_names({"6f", "4a", "6a"}));
  CHECK(planned({}, "6f") == by_names({"6f"}));
}

TEST_CASE("plan: one family is left in its order", "[plan][SORT-6]") {
  CHECK(planned({"4a", "4b", "4c"}, "4a") == by_names({"4a", "4b", "4c"}));
}

TEST_CASE("plan: a group is exhausted before the next one, and each interleaves by itself",
          "[plan][GROUP-4][SORT-6]") {
  // "all of the endpoints of the first group SHOULD be started before starting attempts using the next group"
  CHECK(planned({"6a", "6b", "4a", "|", "6c", "6d", "4c"}, "6a") ==
        by_names({"6a", "4a", "6b", "6c", "4c", "6d"}));
  CHECK(planned({"6a", "|", "4a", "4b", "6b"}, "6a") == by_names({"6a", "4a", "6b", "4b"}));
  CHECK(planned({"6a", "6b", "4a", "|", "6c", "6d", "6e", "4c"}, "6a", 2) ==
        by_names({"6a", "6b", "4a", "6c", "6d", "4c", "6e"}));
}

TEST_CASE("plan: the named endpoint of a later group comes first all the same", "[plan][GROUP-4]") {
  CHECK(planned({"6a", "4a", "|", "6b", "4b"}, "4b") == by_names({"4b", "6a", "4a", "6b"}));
  CHECK(planned({"6a", "|", "4b"}, "4b") == by_names({"4b", "6a"}));
}

TEST_CASE("plan: an endpoint behind a NAT64 counts as IPv4", "[plan][NAT64-1]") {
  happy::listed_endpoint behind{.where = by_name("6c"), .translated = true};
  const happy::listed_endpoint list[] = {
      {.where = by_name("6a")}, {.where = by_name("6b")}, behind};
  const auto order = [&](const char* named) {
    std::vector<happy::endpoint> result;
    for (const auto& e : happy::plan(list, by_name(named), 1)) result.push_back(e.where);
    return result;
  };
  CHECK(order("6a") == by_names({"6a", "6c", "6b"}));
  CHECK(order("6c") == by_names({"6c", "6a", "6b"}));
}

TEST_CASE("plan: what the history says of a path stays with its endpoint", "[plan][ATTEMPT-4]") {
  const happy::listed_endpoint list[] = {
      {.where = by_name("6a"), .expected_handshake = happy::milliseconds(120)},
      {.where = by_name("4a"), .expected_handshake = happy::milliseconds(40)}};
  const happy::endpoint_list result = happy::plan(list, by_name("4a"), 1);
  REQUIRE(result.size() == 2);
  CHECK(result[0].expected_handshake == happy::milliseconds(40));
  CHECK(result[1].expected_handshake == happy::milliseconds(120));
}
