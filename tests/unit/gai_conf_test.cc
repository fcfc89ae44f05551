#include "resolver/gai_conf.h"

#include <string>

#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

candidate towards(const std::string& destination, const std::string& source) {
  return {.destination = test::ip(destination), .source = test::ip(source), .has_source = true};
}

// Whether the file's policy puts the first before the second.
bool prefers(const gai_conf& conf, const candidate& a, const candidate& b) {
  return compare(a, b, conf.table()) < 0;
}

const candidate over_ipv6 = towards("2001:db8::1", "2001:db8::2");
const candidate over_ipv4 = towards("192.0.2.1", "192.0.2.9");

}  // namespace

TEST_CASE("gai_conf: without lines the compiled-in tables hold", "[gai_conf][SORT-1]") {
  const gai_conf conf = parse_gai_conf("# label ::1/128 0\n\n  \nreload yes\n");
  CHECK(conf.labels.empty());
  CHECK(conf.precedences.empty());
  CHECK(conf.ipv4_scopes.empty());
  CHECK(prefers(conf, over_ipv6, over_ipv4));
}

TEST_CASE("gai_conf: the line that administrators uncomment prefers IPv4", "[gai_conf][SORT-1]") {
  const gai_conf conf = parse_gai_conf("precedence ::ffff:0:0/96  100\n");
  CHECK(prefers(conf, over_ipv4, over_ipv6));
  // One line replaces the whole table; all others have 40 then.
  REQUIRE(conf.precedences.size() == 2);
  CHECK(conf.precedences[0].prefix_length == 96);
  CHECK(conf.precedences[1].value == 40);
}

TEST_CASE("gai_conf: labels and scopes of one's own", "[gai_conf][SORT-1]") {
  // The destination's label is its source's no more: rule 5 then prefers the other.
  CHECK(prefers(parse_gai_conf("label 2001:db8::1/128 9\nlabel ::ffff:0:0/96 4 # all IPv4"),
                over_ipv4, over_ipv6));
  const gai_conf conf = parse_gai_conf("scopev4 192.0.2.1/32 2\nscopev4 ::ffff:10.0.0.0/104 5\n");
  REQUIRE(conf.ipv4_scopes.size() == 3);
  CHECK(conf.ipv4_scopes[0].prefix_length == 128);
  CHECK(conf.ipv4_scopes[0].value == 2);
  CHECK(conf.ipv4_scopes[1].prefix_length == 104);
  CHECK(conf.ipv4_scopes[2].value == 14);
}

TEST_CASE("gai_conf: what glibc ignores is ignored", "[gai_conf][SORT-1]") {
  for (const char* line :
       {"label", "label ::1/129 1", "label 192.0.2.1 1", "label ::1/x 1", "label ::1 x",
        "label ::1 99999999999", "precedence ::1/-1 5", "scopev4 2001:db8::/32 2",
        "scopev4 ::ffff:10.0.0.0/95 2", "scopev4 10.0.0.0/33 2", "Label ::1 2", "labels ::1 2"}) {
    INFO(line);
    const gai_conf conf = parse_gai_conf(line);
    CHECK(conf.labels.size() + conf.precedences.size() + conf.ipv4_scopes.size() == 0);
  }
}

TEST_CASE("gai_conf: the number of rows is bounded", "[gai_conf]") {
  std::string text;
  for (std::size_t i = 0; i < max_gai_conf_rows + 100; ++i) text += "label 2001:db8::/32 3\n";
  CHECK(parse_gai_conf(text).labels.size() == max_gai_conf_rows + 1);
}

}  // namespace happy
