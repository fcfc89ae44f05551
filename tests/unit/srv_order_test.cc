// SRV records in the order in which their targets are to be tried, and which are kept where there are too many.

#include <map>

#include "resolver/service_record.h"
#include "tests/support/catch.h"
#include "tests/support/srv_records.h"

namespace happy {
namespace {

using test::srv;
using test::targets_of;
using names = std::vector<std::string>;

}  // namespace

TEST_CASE("srv: lower priorities first", "[srv][XMPP-1]") {
  // "sorts and orders the resulting list of target hosts, as defined in the 'Usage rules' section of RFC
  // 2782"
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    std::vector<service_record> records{srv(20, 900, 1, "c"), srv(10, 0, 1, "a"),
                                        srv(30, 0, 1, "d"), srv(10, 0, 1, "a")};
    std::uint32_t random = seed;
    order_srv(records, random);
    CHECK(targets_of(records) == names{"a", "a", "c", "d"});
  }
}

TEST_CASE("srv: where there are too many targets, each priority keeps what it can",
          "[srv][XMPP-1]") {
  const auto sizes = [](const std::vector<std::size_t>& groups, std::size_t most) {
    std::vector<service_record> records;
    for (std::size_t priority = 0; priority < groups.size(); ++priority) {
      for (std::size_t i = 0; i < groups[priority]; ++i)
        records.push_back(srv(static_cast<std::uint16_t>(priority), 0, 1, std::to_string(i)));
    }
    limit_srv(records, most);
    std::vector<std::size_t> left(groups.size(), 0);
    for (const service_record& r : records) {
      CHECK(r.target == std::to_string(left[r.priority]));  // the first ones stay
      ++left[r.priority];
    }
    return left;
  };
  using counts = std::vector<std::size_t>;
  CHECK(sizes({3, 2}, 8) == counts{3, 2});
  CHECK(sizes({20, 1, 1}, 8) == counts{6, 1, 1});
  CHECK(sizes({1, 1, 20}, 8) == counts{1, 1, 6});
  CHECK(sizes({5, 5}, 7) == counts{4, 3});  // the better priority has more
  CHECK(sizes({1, 1, 1, 1, 1}, 3) == counts{1, 1, 1, 0, 0});
  CHECK(sizes({}, 3) == counts{});
}

TEST_CASE("srv: the first target is drawn by the weights", "[srv][XMPP-1]") {
  // "The probability of [a server] being selected is proportional to its weight": chi-squared with three
  // degrees of freedom; 16.27 is passed by chance once in a thousand seeds, and the seed is fixed.
  const std::map<std::string, int> weights{{"a", 10}, {"b", 20}, {"c", 30}, {"d", 40}};
  constexpr int draws = 10'000;
  std::map<std::string, int> first;
  std::uint32_t random = 20240919;
  for (int i = 0; i < draws; ++i) {
    std::vector<service_record> records;
    for (const auto& [name, weight] : weights)
      records.push_back(srv(1, static_cast<std::uint16_t>(weight * 100), 1, name));
    order_srv(records, random);
    ++first[records.front().target];
  }
  double chi_squared = 0;
  for (const auto& [name, weight] : weights) {
    const double expected = draws * weight / 100.0;
    const double off = first[name] - expected;
    chi_squared += off * off / expected;
  }
  CAPTURE(first);
  CHECK(chi_squared < 16.27);
  CHECK(chi_squared > 0);
}

TEST_CASE(
    "srv: equal weights in varying order; without weight there is little chance of being first",
    "[srv][XMPP-1]") {
  for (const std::uint16_t weight : {std::uint16_t{0}, std::uint16_t{7}}) {
    std::map<std::string, int> first;
    std::uint32_t random = 1;
    for (int i = 0; i < 3000; ++i) {
      std::vector<service_record> records{srv(1, weight, 1, "a"), srv(1, weight, 1, "b"),
                                          srv(1, weight, 1, "c")};
      order_srv(records, random);
      ++first[records.front().target];
    }
    CAPTURE(weight, first);
    for (const char* name : {"a", "b", "c"}) CHECK(first[name] > 700);
  }
  int lightest = 0;
  std::uint32_t random = 1;
  for (int i = 0; i < 1000; ++i) {
    std::vector<service_record> records{srv(1, 99, 1, "heavy"), srv(1, 0, 1, "light")};
    order_srv(records, random);
    if (records.front().target == "light") ++lightest;
  }
  CHECK(lightest > 0);  // "a very small chance of being selected": 1 of 100
  CHECK(lightest < 40);
}

TEST_CASE("srv: one seed, one order", "[srv][XMPP-1]") {
  const auto order = [](std::uint32_t seed) {
    std::vector<service_record> records;
    for (const char* name : {"a", "b", "c", "d", "e"}) records.push_back(srv(1, 5, 1, name));
    order_srv(records, seed);
    return targets_of(records);
  };
  CHECK(order(7) == order(7));
  CHECK(order(7) != order(8));
}

}  // namespace happy
