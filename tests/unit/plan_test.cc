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

std::vector<happy::endpoint> planned(const std::vector<std::string>& sorted,
                                     const std::string& named, int count = 1) {
  const auto list = by_names(sorted);
  const happy::endpoint_list result = happy::plan(list, by_name(named), count);
  return {result.begin(), result.end()};
}

}  // namespace

TEST_CASE("plan: families alternate from the second place on", "[plan][SORT-6]") {
  // "Whichever address family is first in the list should be followed by an endpoint of the other
  // address family."
  CHECK(planned({"6a", "6b", "6c", "4a", "4b"}, "6a") == by_names({"6a", "4a", "6b", "4b", "6c"}));
  CHECK(planned({"4a", "4b", "6a"}, "4a") == by_names({"4a", "6a", "4b"}));
}

TEST_CASE("plan: the preferred address family count", "[plan][SORT-7][CONFIG-1]") {
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
