#include "resolver/translation.h"

#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

using test::ip;

struct row {
  const char* prefix;
  const char* ipv4;
  const char* ipv6;
};

// RFC 6052 s2.4, tables 2 and 3.
constexpr row rfc_table[] = {
    {"2001:db8::/32", "192.0.2.33", "2001:db8:c000:221::"},
    {"2001:db8:100::/40", "192.0.2.33", "2001:db8:1c0:2:21::"},
    {"2001:db8:122::/48", "192.0.2.33", "2001:db8:122:c000:2:2100::"},
    {"2001:db8:122:300::/56", "192.0.2.33", "2001:db8:122:3c0:0:221::"},
    {"2001:db8:122:344::/64", "192.0.2.33", "2001:db8:122:344:c0:2:2100:0"},
    {"2001:db8:122:344::/96", "192.0.2.33", "2001:db8:122:344::192.0.2.33"},
    {"64:ff9b::/96", "192.0.2.33", "64:ff9b::192.0.2.33"},
};

nat64_prefix prefix(const char* text) {
  const auto parsed = parse_prefix(text);
  REQUIRE(parsed);
  return *parsed;
}

}  // namespace

TEST_CASE("translation: the table of RFC 6052, there and back", "[translation][V6ONLY-6]") {
  for (const row& r : rfc_table) {
    INFO(r.prefix);
    CHECK(synthesise(prefix(r.prefix), ip(r.ipv4)) == ip(r.ipv6));
    CHECK(embedded_ipv4(prefix(r.prefix), ip(r.ipv6)) == ip(r.ipv4));
  }
}

TEST_CASE("translation: the u octet is zero for every length below 96", "[translation][V6ONLY-6]") {
  for (const row& r : rfc_table) {
    CHECK(synthesise(prefix(r.prefix), ip("255.255.255.255")).bytes[8] == 0);
  }
}

TEST_CASE("translation: an address that is not quite a synthesised one is none",
          "[translation][NAT64-1]") {
  CHECK_FALSE(embedded_ipv4(prefix("2001:db8:64::/96"), ip("2001:db8:65::c000:221")));
  CHECK_FALSE(embedded_ipv4(prefix("2001:db8::/32"), ip("2001:db8:c000:221::1")));     // suffix
  CHECK_FALSE(embedded_ipv4(prefix("2001:db8::/32"), ip("2001:db8:c000:221:100::")));  // u octet
  CHECK_FALSE(embedded_ipv4(prefix("2001:db8:64::/96"), ip("192.0.2.33")));
}

TEST_CASE("translation: prefixes that there cannot be", "[translation][V6ONLY-6]") {
  for (const char* text : {"",
                           "/96",
                           "2001:db8::",
                           "2001:db8::/",
                           "2001:db8::/0",
                           "2001:db8::/95",
                           "2001:db8::/128",
                           "2001:db8::/960",
                           "2001:db8::/+96",
                           "2001:db8::/96 ",
                           "192.0.2.0/96",
                           "2001:db8::1/96",
                           "2001:db8:1::/32",
                           "2001:db8:0:0:100::/96",
                           "ff02::/96",
                           "fe80::/64",
                           "::ffff:0:0/96",
                           "::/96",
                           "fe80::1%1/64",
                           "2001:db8:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000/96"}) {
    INFO(text);
    CHECK_FALSE(parse_prefix(text));
  }
}

TEST_CASE("translation: a prefix as text", "[translation]") {
  for (const row& r : rfc_table) CHECK(to_text(prefix(r.prefix)).chars == std::string(r.prefix));
}

TEST_CASE("translation: what is scoped to a host, a link or no host at all is never synthesised",
          "[translation][V6ONLY-2]") {
  for (const char* text : {"64:ff9b::/96", "2001:db8:64::/96"}) {
    for (const char* never : {"0.0.0.0", "0.255.255.255", "127.0.0.1", "127.255.255.255",
                              "169.254.0.1", "169.254.255.255", "192.0.0.1", "192.0.0.171",
                              "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"}) {
      INFO(text << " " << never);
      CHECK_FALSE(may_synthesise(prefix(text), ip(never)));
    }
    CHECK(may_synthesise(prefix(text), ip("126.255.255.255")));
    CHECK(may_synthesise(prefix(text), ip("169.253.255.255")));
    CHECK(may_synthesise(prefix(text), ip("223.255.255.255")));
    CHECK_FALSE(may_synthesise(prefix(text), ip("2001:db8::1")));
  }
}

TEST_CASE("translation: only the well-known prefix is closed to what is not globally reachable",
          "[translation][V6ONLY-6]") {
  for (const char* local : {"10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "198.18.0.1",
                            "198.51.100.10", "203.0.113.1", "192.0.2.1"}) {
    INFO(local);
    CHECK_FALSE(may_synthesise(well_known_prefix, ip(local)));
    CHECK(may_synthesise(prefix("2001:db8:64::/96"), ip(local)));
    CHECK(may_synthesise(prefix("64:ff9b:1::/48"), ip(local)));
  }
  CHECK(may_synthesise(well_known_prefix, ip("45.10.0.10")));
}

}  // namespace happy
