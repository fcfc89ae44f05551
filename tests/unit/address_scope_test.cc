#include "resolver/address_scope.h"

#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

using test::ip;

struct edge {
  const char* first;
  const char* last;
  privacy inside;
  const char* before;  // nullptr: there is none
  privacy judged_before;
  const char* after;
  privacy judged_after;
};

constexpr auto own_host = privacy::own_host;
constexpr auto link_local = privacy::link_local;
constexpr auto special = privacy::special;
constexpr auto global = privacy::global;

constexpr edge edges[] = {
    {"0.0.0.1", "0.255.255.255", special, "0.0.0.0", own_host, "1.0.0.0", global},
    {"10.0.0.0", "10.255.255.255", special, "9.255.255.255", global, "11.0.0.0", global},
    {"100.64.0.0", "100.127.255.255", special, "100.63.255.255", global, "100.128.0.0", global},
    {"127.0.0.0", "127.255.255.255", own_host, "126.255.255.255", global, "128.0.0.0", global},
    {"169.254.0.0", "169.254.255.255", link_local, "169.253.255.255", global, "169.255.0.0",
     global},
    {"172.16.0.0", "172.31.255.255", special, "172.15.255.255", global, "172.32.0.0", global},
    {"192.0.0.0", "192.0.0.8", special, "191.255.255.255", global, "192.0.0.9", global},
    {"192.0.0.9", "192.0.0.10", global, "192.0.0.8", special, "192.0.0.11", special},
    {"192.0.0.11", "192.0.0.255", special, "192.0.0.10", global, "192.0.1.0", global},
    {"192.0.0.170", "192.0.0.171", special, "192.0.0.169", special, "192.0.0.172", special},
    {"192.0.2.0", "192.0.2.255", special, "192.0.1.255", global, "192.0.3.0", global},
    {"192.31.196.0", "192.31.196.255", global, nullptr, global, nullptr, global},
    {"192.52.193.0", "192.52.193.255", global, nullptr, global, nullptr, global},
    {"192.88.99.2", "192.88.99.2", special, "192.88.99.1", global, "192.88.99.3", global},
    {"192.168.0.0", "192.168.255.255", special, "192.167.255.255", global, "192.169.0.0", global},
    {"192.175.48.0", "192.175.48.255", global, nullptr, global, nullptr, global},
    {"198.18.0.0", "198.19.255.255", special, "198.17.255.255", global, "198.20.0.0", global},
    {"198.51.100.0", "198.51.100.255", special, "198.51.99.255", global, "198.51.101.0", global},
    {"203.0.113.0", "203.0.113.255", special, "203.0.112.255", global, "203.0.114.0", global},
    {"224.0.0.0", "239.255.255.255", special, "223.255.255.255", global, "240.0.0.0", special},
    {"240.0.0.0", "255.255.255.255", special, nullptr, global, nullptr, global},

    {"::1", "::1", own_host, "::", own_host, "::2", special},
    {"::ffff:8.8.8.8", "::ffff:9.9.9.9", global, "::fffe:0:0", global, "::1:0:0:0", global},
    {"64:ff9b::808:808", "64:ff9b::909:909", global, nullptr, global, "64:ff9b::1:0:0", global},
    {"64:ff9b:1::909:909", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", special,
     "64:ff9b:0:ffff:ffff:ffff:ffff:ffff", global, "64:ff9b:2::", global},
    {"100::", "100::ffff:ffff:ffff:ffff", special, "ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", global,
     "100:0:0:1::", special},
    {"100:0:0:1::", "100::1:ffff:ffff:ffff:ffff", special, nullptr, global, "100:0:0:2::", global},
    {"2001:1::", "2001:1::", special, nullptr, global, "2001:1::1", global},
    {"2001:1::1", "2001:1::3", global, "2001:1::", special, "2001:1::4", special},
    {"2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", special, nullptr, global,
     "2001:2:1::", special},
    {"2001:3::", "2001:3:ffff:ffff:ffff:ffff:ffff:ffff", global, "2001:2:ffff::", special,
     "2001:4::", special},
    {"2001:4:112::", "2001:4:112:ffff:ffff:ffff:ffff:ffff", global, "2001:4:111::", special,
     "2001:4:113::", special},
    {"2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff", special, "2001:f::", special,
     "2001:20::", global},
    {"2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff", global, nullptr, global,
     "2001:30::", global},
    {"2001:30::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff", global, nullptr, global,
     "2001:40::", special},
    {"2001:40::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", special, nullptr, global,
     "2001:200::", global},
    {"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", special,
     "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", global, "2001:db9::", global},
    {"2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", global, nullptr, global, nullptr,
     global},
    {"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", special,
     "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", global, "3fff:1000::", global},
    {"5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", special, "5eff:ffff::", global,
     "5f01::", global},
    {"fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", special, "fbff:ffff::", global,
     "fe00::", global},
    {"fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", link_local, "fe7f:ffff::", global,
     "fec0::", special},
    {"fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", special, nullptr, global,
     "ff00::", special},
    {"ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", special, nullptr, global, nullptr,
     global},
};

}  // namespace

TEST_CASE("address_scope: every block is judged by its registry up to its first and last address",
          "[address_scope]") {
  for (const edge& e : edges) {
    INFO(e.first << " - " << e.last);
    CHECK(privacy_of(ip(e.first)) == e.inside);
    CHECK(privacy_of(ip(e.last)) == e.inside);
    if (e.before != nullptr) CHECK(privacy_of(ip(e.before)) == e.judged_before);
    if (e.after != nullptr) CHECK(privacy_of(ip(e.after)) == e.judged_after);
  }
}

TEST_CASE("address_scope: an IPv4 address inside an IPv6 address is judged as itself",
          "[address_scope]") {
  const std::pair<const char*, privacy> cases[] = {
      {"::ffff:127.0.0.1", own_host},
      {"::ffff:10.0.0.1", special},
      {"::ffff:169.254.1.1", link_local},
      {"::ffff:8.8.8.8", global},
      {"::ffff:0.0.0.0", own_host},
      {"::127.0.0.1", own_host},
      {"::8.8.8.8", global},
      {"64:ff9b::7f00:1", own_host},
      {"64:ff9b::a00:1", special},
      {"64:ff9b::808:808", global},
      {"64:ff9b:1::7f00:1", own_host},
      {"64:ff9b:1:7f00:0:100::", own_host},
      {"64:ff9b:1:808:8:800::", special},
      {"64:ff9b:1::808:808", special},
      {"2002:7f00:1::1", own_host},
      {"2002:a9fe:101::1", link_local},
      {"2002:c0a8:1::1", special},
      {"2002:808:808::1", global},
      {"2001:0:808:808::80ff:fffe", own_host},
      {"2001:0:808:808::f7f7:f7f7", special},
  };
  for (const auto& [text, expected] : cases) {
    INFO(text);
    CHECK(privacy_of(ip(text)) == expected);
  }
}

TEST_CASE("address_scope: this host's own address counts as loopback", "[address_scope]") {
  CHECK(privacy_of(ip("8.8.8.8"), true) == privacy::own_host);
  CHECK(privacy_of(ip("2a00::1"), true) == privacy::own_host);
}

TEST_CASE("address_scope: more private is less", "[address_scope]") {
  CHECK(privacy::own_host < privacy::link_local);
  CHECK(privacy::link_local < privacy::special);
  CHECK(privacy::special < privacy::global);
}

TEST_CASE("address_scope: the name of the block that decided", "[address_scope]") {
  CHECK(block_name(ip("192.0.2.1")) == "Documentation (TEST-NET-1)");
  CHECK(block_name(ip("64:ff9b::7f00:1")) == "Loopback");
  CHECK(block_name(ip("64:ff9b::808:808")) == "IPv4-IPv6 Translat.");
  CHECK(block_name(ip("2a00::1")).empty());
}

}  // namespace happy
