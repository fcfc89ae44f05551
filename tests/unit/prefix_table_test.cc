// Where prefixes come from, and for how long: RFC 7050, RFC 8781.

#include "resolver/prefix_table.h"

#include <vector>

#include "resolver/pref64_option.h"
#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

using std::chrono::seconds;
using test::ip;

constexpr time_point start{seconds(1000)};

nat64_prefix prefix(const std::string& text) { return parse_prefix(text).value(); }

std::vector<std::string> texts(const prefix_list& list) {
  std::vector<std::string> result;
  for (const nat64_prefix& p : list) result.emplace_back(to_text(p).chars);
  return result;
}

std::vector<std::string> discover(const std::vector<std::string>& answers) {
  std::vector<address> list;
  for (const std::string& a : answers) list.push_back(ip(a));
  return texts(discovered_prefixes(list));
}

using list = std::vector<std::string>;

std::vector<std::uint8_t> option(std::uint16_t word, const char* prefix_bits) {
  std::vector<std::uint8_t> bytes = {38, 2, static_cast<std::uint8_t>(word >> 8),
                                     static_cast<std::uint8_t>(word)};
  const address a = ip(prefix_bits);
  bytes.insert(bytes.end(), a.bytes.begin(), a.bytes.begin() + 12);
  return bytes;
}

advertiser router(std::uint32_t interface, const char* address) { return {interface, ip(address)}; }

}  // namespace

TEST_CASE("discovery: the well-known addresses at every place that they can have",
          "[discovery][V6ONLY-5]") {
  for (const char* text :
       {"2001:db8::/32", "2001:db8:100::/40", "2001:db8:122::/48", "2001:db8:122:300::/56",
        "2001:db8:122:344::/64", "2001:db8:122:344::/96", "64:ff9b::/96"}) {
    INFO(text);
    const address one = synthesise(prefix(text), ip("192.0.0.170"));
    const address other = synthesise(prefix(text), ip("192.0.0.171"));
    CHECK(discover({to_text(one).chars, to_text(other).chars}) == list{text});
    CHECK(discover({to_text(one).chars}) == list{text});
    CHECK(discover({to_text(other).chars}) == list{text});
  }
}

TEST_CASE("discovery: all answers count, each prefix once", "[discovery][V6ONLY-5]") {
  CHECK(discover({"2001:db8:64::c000:aa", "2001:db8:64::c000:ab", "2001:db8:65::c000:aa",
                  "2001:db8:65::c000:ab"}) == list{"2001:db8:64::/96", "2001:db8:65::/96"});
}

TEST_CASE("discovery: an answer without a well-known address tells nothing",
          "[discovery][V6ONLY-5]") {
  CHECK(discover({}).empty());
  CHECK(discover({"2001:db8:64::c000:ac"}).empty());
  CHECK(discover({"2001:db8::1"}).empty());
}

TEST_CASE("discovery: a prefix that contains the address itself is told by the other one",
          "[discovery][V6ONLY-5]") {
  CHECK(discover({"2001:db8:c000:aa::c000:aa", "2001:db8:c000:aa::c000:ab"}) ==
        list{"2001:db8:c000:aa::/96"});
}

TEST_CASE("discovery: what stays ambiguous is not used", "[discovery][V6ONLY-5]") {
  CHECK(discover({"2001:db8:c000:aa::c000:aa"}).empty());
}

TEST_CASE("discovery: more prefixes than fit are left", "[discovery]") {
  std::vector<std::string> answers;
  for (int i = 1; i <= 20; ++i) answers.push_back("2001:db8:" + std::to_string(i) + "::c000:aa");
  CHECK(discover(answers).size() == max_prefixes);
}

TEST_CASE("PREF64: every length code, and the lifetime in units of eight seconds",
          "[pref64][V6ONLY-3]") {
  const char* expected[] = {"2001:db8:122::/96", "2001:db8:122::/64", "2001:db8:122::/56",
                            "2001:db8:122::/48", "2001:db8:100::/40", "2001:db8::/32"};
  for (std::uint16_t code = 0; code < 6; ++code) {
    const auto parsed =
        parse_pref64(option(static_cast<std::uint16_t>(225 << 3 | code), "2001:db8:122::"));
    REQUIRE(parsed);
    CHECK(std::string(to_text(parsed->prefix).chars) == expected[code]);
    CHECK(parsed->lifetime == seconds(1800));
  }
}

TEST_CASE("PREF64: the longest lifetime, and none", "[pref64][V6ONLY-3]") {
  CHECK(parse_pref64(option(0xfff8, "64:ff9b::"))->lifetime == seconds(65528));
  CHECK(parse_pref64(option(0, "64:ff9b::"))->lifetime == seconds(0));
}

TEST_CASE("PREF64: what is no such option", "[pref64][V6ONLY-3]") {
  CHECK_FALSE(parse_pref64(option(6, "2001:db8::")));  // reserved
  CHECK_FALSE(parse_pref64(option(7, "2001:db8::")));
  CHECK_FALSE(parse_pref64({}));
  auto bytes = option(0, "2001:db8::");
  bytes.pop_back();
  CHECK_FALSE(parse_pref64(bytes));
  bytes = option(0, "2001:db8::");
  bytes[0] = 25;
  CHECK_FALSE(parse_pref64(bytes));
  bytes = option(0, "2001:db8::");
  bytes[1] = 3;
  CHECK_FALSE(parse_pref64(bytes));
  CHECK_FALSE(parse_pref64(option(0, "ff02::")));
}

TEST_CASE("prefixes: an advertised one holds for its lifetime", "[prefixes][V6ONLY-3]") {
  prefix_table table;
  table.advertise(router(2, "fe80::1"), prefix("2001:db8:64::/96"), seconds(100), start);
  CHECK(texts(table.current(start + seconds(99))) == list{"2001:db8:64::/96"});
  CHECK(table.current(start + seconds(100)).empty());
}

TEST_CASE("prefixes: advertised again it holds anew", "[prefixes][V6ONLY-3]") {
  prefix_table table;
  table.advertise(router(2, "fe80::1"), prefix("2001:db8:64::/96"), seconds(100), start);
  table.advertise(router(2, "fe80::1"), prefix("2001:db8:64::/96"), seconds(100),
                  start + seconds(50));
  CHECK(table.current(start + seconds(149)).size() == 1);
}

TEST_CASE("prefixes: a withdrawal counts at once, for its own router alone",
          "[prefixes][V6ONLY-3]") {
  prefix_table table;
  table.advertise(router(2, "fe80::1"), prefix("2001:db8:64::/96"), seconds(100), start);
  table.advertise(router(2, "fe80::2"), prefix("2001:db8:64::/96"), seconds(100), start);
  table.advertise(router(2, "fe80::1"), prefix("2001:db8:64::/96"), seconds(0), start);
  CHECK(table.current(start).size() == 1);
  table.advertise(router(2, "fe80::2"), prefix("2001:db8:64::/96"), seconds(0), start);
  CHECK(table.current(start).empty());
}

TEST_CASE("prefixes: two routers and two links speak for themselves", "[prefixes][V6ONLY-3]") {
  prefix_table table;
  table.advertise(router(2, "fe80::1"), prefix("2001:db8:64::/96"), seconds(100), start);
  table.advertise(router(3, "fe80::1"), prefix("2001:db8:65::/96"), seconds(200), start);
  CHECK(texts(table.current(start)) == list{"2001:db8:65::/96", "2001:db8:64::/96"});
  CHECK(texts(table.current(start + seconds(150))) == list{"2001:db8:65::/96"});
}

TEST_CASE("prefixes: what routers say comes before what DNS says", "[prefixes][V6ONLY-3]") {
  prefix_table table;
  prefix_list found;
  found.push_back(prefix("64:ff9b::/96"));
  table.discover(found, start + seconds(300));
  CHECK(texts(table.current(start)) == list{"64:ff9b::/96"});
  table.advertise(router(2, "fe80::1"), prefix("2001:db8:64::/96"), seconds(100), start);
  CHECK(texts(table.current(start)) == list{"2001:db8:64::/96"});
  CHECK(texts(table.current(start + seconds(100))) == list{"64:ff9b::/96"});
  CHECK(table.current(start + seconds(300)).empty());
}

TEST_CASE("prefixes: that nothing was found is remembered for its time", "[prefixes][V6ONLY-5]") {
  prefix_table table;
  CHECK_FALSE(table.is_discovered(start));
  table.discover({}, start + seconds(10));
  CHECK(table.is_discovered(start + seconds(9)));
  CHECK_FALSE(table.is_discovered(start + seconds(10)));
}

TEST_CASE("prefixes: a link that is lost takes its own along", "[prefixes][V6ONLY-3]") {
  prefix_table table;
  table.advertise(router(2, "fe80::1"), prefix("2001:db8:64::/96"), seconds(100), start);
  table.advertise(router(2, "fe80::2"), prefix("2001:db8:66::/96"), seconds(100), start);
  table.advertise(router(3, "fe80::1"), prefix("2001:db8:65::/96"), seconds(100), start);
  table.lose_link(2);
  CHECK(texts(table.current(start)) == list{"2001:db8:65::/96"});
  table.lose_link(4);
  CHECK(table.current(start).size() == 1);
}

TEST_CASE("prefixes: a flood replaces what would expire first", "[prefixes]") {
  prefix_table table;
  table.advertise(router(2, "fe80::1"), prefix("2001:db8:64::/96"), seconds(10'000), start);
  for (int i = 0; i < 1000; ++i) {
    const std::string text = "2001:db8:0:" + std::to_string(i + 1) + "::/96";
    table.advertise(router(2, "fe80::2"), prefix(text), seconds(10 + i), start);
  }
  CHECK(table.current(start).size() == max_prefixes);
  CHECK(table.current(start + seconds(9999)).size() == 1);
}

}  // namespace happy
