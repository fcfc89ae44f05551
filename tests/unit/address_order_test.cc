#include "resolver/address_order.h"

#include <algorithm>
#include <vector>

#include "tests/support/addresses.h"
#include "tests/support/catch.h"

namespace happy {
namespace {

using test::ip;

candidate towards(const std::string& destination, const std::string& source) {
  candidate c;
  c.destination = ip(destination);
  c.has_source = !source.empty();
  if (c.has_source) c.source = ip(source);
  c.source_prefix_length = 24;
  return c;
}

std::vector<std::string> destinations(const std::vector<candidate>& list) {
  std::vector<std::string> texts;
  for (const candidate& c : list) texts.emplace_back(to_text(c.destination).chars);
  return texts;
}

struct example {
  const char* why;
  std::vector<candidate> in_order;
};

void check_from_every_order(const example& e, const policy_table& policy) {
  INFO(e.why);
  const auto expected = destinations(e.in_order);
  auto list = e.in_order;
  sort_by_preference(list, policy);
  CHECK(destinations(list) == expected);
  std::reverse(list.begin(), list.end());
  sort_by_preference(list, policy);
  CHECK(destinations(list) == expected);
}

candidate deprecated(candidate c) {
  c.source_deprecated = true;
  return c;
}

candidate home(candidate c) {
  c.source_home = true;
  return c;
}

// RFC 6724 s10.2.
const std::vector<example>& rfc_examples() {
  static const std::vector<example> examples = {
      {"prefer matching scope",
       {towards("2001:db8:1::1", "2001:db8:1::2"), towards("198.51.100.121", "169.254.13.78")}},
      {"prefer matching scope",
       {towards("198.51.100.121", "198.51.100.117"), towards("2001:db8:1::1", "fe80::1")}},
      {"prefer higher precedence",
       {towards("2001:db8:1::1", "2001:db8:1::2"), towards("10.1.2.3", "10.1.2.4")}},
      {"avoid deprecated addresses",
       {towards("2001:db8:1::1", "2001:db8:1::2"), deprecated(towards("fe80::1", "fe80::2"))}},
      {"prefer home addresses",
       {home(towards("2001:db8:1::1", "2001:db8:3::1")), towards("fe80::1", "fe80::2")}},
      {"prefer smaller scope",
       {towards("fe80::1", "fe80::2"), towards("2001:db8:1::1", "2001:db8:1::2")}},
      {"longest matching prefix",
       {towards("2001:db8:1::1", "2001:db8:1::2"),
        towards("2001:db8:3ffe::1", "2001:db8:3f44::2")}},
      {"prefer matching label",
       {towards("2002:c633:6401::1", "2002:c633:6401::2"),
        towards("2001:db8:1::1", "2002:c633:6401::2")}},
      {"prefer higher precedence",
       {towards("2001:db8:1::1", "2001:db8:1::2"),
        towards("2002:c633:6401::1", "2002:c633:6401::2")}},
  };
  return examples;
}

}  // namespace

TEST_CASE("address_order: RFC 6724 s10.2 comes out as written, from either order",
          "[address_order][SORT-1]") {
  for (const example& e : rfc_examples()) {
    check_from_every_order(e, rfc6724_policy());
    check_from_every_order(e, glibc_policy());
  }
}

TEST_CASE("address_order: each rule decides by itself", "[address_order][SORT-1]") {
  const std::vector<example> examples = {
      {"rule 1: a destination without a source is last",
       {towards("192.0.2.1", "192.0.2.9"), towards("2001:db8::1", "")}},
      {"rule 1 is asked first: even loopback",
       {towards("2001:db8::1", "2001:db8::2"), towards("::1", "")}},
      {"rule 6 without sources", {towards("2001:db8::1", ""), towards("192.0.2.1", "")}},
      {"rule 5: a ULA source does not match a global destination",
       {towards("192.0.2.1", "192.0.2.9"), towards("2001:db8::1", "fd00::2")}},
      {"rule 5: nor a 6to4 source",
       {towards("192.0.2.1", "192.0.2.9"), towards("2001:db8::1", "2002:c633:6401::2")}},
      {"rule 8: site-local before global",
       {towards("fec0::1", "fec0::2"), towards("2001:db8::1", "2001:db8::2")}},
      {"rule 9 inside the source's subnet",
       {towards("192.0.2.8", "192.0.2.9"), towards("192.0.2.200", "192.0.2.9")}},
      {"rule 9: in the subnet before outside",
       {towards("192.0.2.200", "192.0.2.9"), towards("192.0.3.1", "192.0.2.9")}},
  };
  for (const example& e : examples) check_from_every_order(e, glibc_policy());
}

TEST_CASE("address_order: rules 3, 4 and 7, and that each yields to those before it",
          "[address_order][SORT-1]") {
  candidate tunnelled = towards("2001:db8:1::1", "2001:db8:1::2");
  tunnelled.source_tunnelled = true;
  const candidate native = towards("2001:db8:2::1", "2001:db8:4000::2");
  check_from_every_order({"rule 7", {native, tunnelled}}, glibc_policy());
  check_from_every_order({"rule 6 before 7", {tunnelled, towards("192.0.2.1", "192.0.2.9")}},
                         glibc_policy());
  check_from_every_order(
      {"rule 2 before 3",
       {deprecated(towards("2001:db8::1", "2001:db8::2")), towards("198.51.100.1", "169.254.1.1")}},
      glibc_policy());
  check_from_every_order({"rule 3 before 4",
                          {towards("2001:db8:2::1", "2001:db8::2"),
                           home(deprecated(towards("2001:db8::1", "2001:db8::2")))}},
                         glibc_policy());
  check_from_every_order(
      {"rule 4 before 5",
       {home(towards("2002:c633:6401::1", "2001:db8::2")), towards("192.0.2.1", "192.0.2.9")}},
      glibc_policy());
}

TEST_CASE("address_order: a lower round-trip time goes first, where both are known",
          "[address_order][SORT-2]") {
  // "add a Destination Address Selection rule between rules 8 and 9 that prefers addresses with lower RTTs"
  candidate far = towards("2001:db8::1", "2001:db8::2");  // rule 9 would have it first
  candidate near = towards("2001:db8:1::1", "2001:db8::2");
  far.rtt = milliseconds(80);
  near.rtt = milliseconds(20);
  check_from_every_order({"rule 9 is asked later", {near, far}}, glibc_policy());

  candidate ipv4 = towards("192.0.2.1", "192.0.2.9");
  ipv4.rtt = milliseconds(1);
  check_from_every_order({"rule 6 before", {far, ipv4}}, glibc_policy());
  candidate link_local = towards("fe80::1", "fe80::2");
  link_local.rtt = milliseconds(90);
  check_from_every_order({"rule 8 before", {link_local, near}}, glibc_policy());

  near.rtt = duration(0);
  check_from_every_order({"unknown: rule 9 decides", {far, near}}, glibc_policy());
}

TEST_CASE("address_order: a used address goes before one that was not, after the RTT rule",
          "[address_order][SORT-3]") {
  // "prefers used addresses over unused ones"
  candidate fresh = towards("2001:db8::1", "2001:db8::2");
  candidate used = towards("2001:db8:1::1", "2001:db8::2");
  used.used = true;
  check_from_every_order({"before rule 9", {used, fresh}}, glibc_policy());
  used.rtt = milliseconds(50);
  fresh.rtt = milliseconds(49);
  check_from_every_order({"after the RTT rule", {fresh, used}}, glibc_policy());
}

TEST_CASE("address_order: a higher SRV weight goes first, after the rules of history",
          "[address_order][XMPP-5]") {
  candidate light = towards("2001:db8::1", "2001:db8::2");
  candidate heavy = towards("2001:db8:1::1", "2001:db8::2");
  light.weight = 10;
  heavy.weight = 60000;
  check_from_every_order({"before rule 9", {heavy, light}}, glibc_policy());
  light.used = true;
  check_from_every_order({"after the used rule", {light, heavy}}, glibc_policy());
}

TEST_CASE(
    "address_order: what failed lately goes after all that is usable, before what has no route",
    "[address_order][SORT-5]") {
  candidate demoted = towards("2001:db8::1", "2001:db8::2");
  demoted.demoted = true;
  check_from_every_order(
      {"rule 1", {towards("192.0.2.1", "192.0.2.9"), demoted, towards("2001:db8::2", "")}},
      glibc_policy());
}

TEST_CASE("address_order: services by priority, equal ones by their rank, addresses of none last",
          "[address_order][GROUP-2][GROUP-3]") {
  // "the unassociated addresses SHOULD be put in a group of endpoints that is prioritized at the end"
  const auto of_service = [](candidate c, std::uint32_t priority, std::uint16_t shuffled) {
    c.service_priority = priority;
    c.service_rank = shuffled;
    return c;
  };
  const candidate six = towards("2001:db8::1", "2001:db8::2");
  const candidate four = towards("192.0.2.1", "192.0.2.9");
  const candidate six_too = towards("2001:db8::7", "2001:db8::2");
  const candidate four_too = towards("192.0.2.7", "192.0.2.9");
  check_from_every_order({"priority before every rule",
                          {of_service(four, 1, 1), of_service(six, 2, 0), six_too, four_too}},
                         glibc_policy());
  check_from_every_order({"rank among equals", {of_service(four, 2, 0), of_service(six, 2, 1)}},
                         glibc_policy());
  check_from_every_order(
      {"rules inside a group",
       {of_service(six, 2, 1), of_service(four, 2, 1), of_service(six_too, 3, 0)}},
      glibc_policy());
  CHECK(same_group(of_service(six, 2, 1), of_service(four, 2, 1)));
  CHECK_FALSE(same_group(of_service(six, 2, 0), of_service(four, 2, 1)));
  CHECK_FALSE(same_group(of_service(six, 1, 0), four));
}

TEST_CASE("address_order: a known-local ULA goes before global addresses, if so wished",
          "[address_order][SORT-1]") {
  const candidate local = towards("fd00:1:2:3::1", "fd00:1:2:4::9");
  const candidate foreign = towards("fd00:9:9::1", "fd00:1:2:4::9");
  const candidate global = towards("2001:db8::1", "2001:db8::2");
  policy_table policy = rfc6724_policy();
  check_from_every_order({"RFC 6724", {global, local}}, policy);
  policy.known_local_ula = true;
  check_from_every_order({"its update", {local, global, foreign}}, policy);
}

TEST_CASE("address_order: a thousand candidates are sorted as few are", "[address_order]") {
  const auto make = [](std::size_t count) {
    std::vector<candidate> list;
    for (std::size_t i = 0; i < count; ++i) {
      const auto mixed = static_cast<std::uint32_t>(i * 2654435761u);
      candidate c = towards(i % 2 == 0 ? "2001:db8::1" : "192.0.2.1",
                            i % 2 == 0 ? "2001:db8::2" : "192.0.2.9");
      std::memcpy(c.destination.bytes.data() + (i % 2 == 0 ? 12 : 0), &mixed, sizeof mixed);
      list.push_back(c);
    }
    return list;
  };
  std::vector<candidate> thousand = make(1000);
  sort_by_preference(thousand);
  for (std::size_t i = 1; i < thousand.size(); ++i) {
    CHECK(compare(thousand[i - 1], thousand[i], glibc_policy()) <= 0);
  }
}

TEST_CASE("address_order: a ULA goes before IPv4 in glibc and after it in RFC 6724",
          "[address_order][SORT-1]") {
  const example ula_first{"glibc",
                          {towards("fd00::1", "fd00::2"), towards("192.0.2.1", "192.0.2.9")}};
  const example ipv4_first{"RFC",
                           {towards("192.0.2.1", "192.0.2.9"), towards("fd00::1", "fd00::2")}};
  check_from_every_order(ula_first, glibc_policy());
  check_from_every_order(ipv4_first, rfc6724_policy());
}

TEST_CASE("address_order: rule 10 leaves the order unchanged", "[address_order][SORT-1]") {
  SECTION("IPv4 outside the source's subnet, whatever the bits have in common") {
    std::vector<candidate> list = {towards("203.0.113.1", "192.0.2.9"),
                                   towards("192.0.3.1", "192.0.2.9"),
                                   towards("198.51.100.1", "192.0.2.9")};
    const auto before = destinations(list);
    sort_by_preference(list);
    CHECK(destinations(list) == before);
  }
  SECTION("an unknown netmask counts as a subnet of one address") {
    std::vector<candidate> list = {towards("192.0.2.200", "192.0.2.9"),
                                   towards("192.0.2.8", "192.0.2.9")};
    for (candidate& c : list) c.source_prefix_length = 32;
    const auto before = destinations(list);
    sort_by_preference(list);
    CHECK(destinations(list) == before);
  }
  SECTION("no sources at all") {
    std::vector<candidate> list = {towards("2001:db8:2::1", ""), towards("2001:db8:1::1", "")};
    const auto before = destinations(list);
    sort_by_preference(list);
    CHECK(destinations(list) == before);
  }
}

TEST_CASE("address_order: lists of none and one are left alone", "[address_order][SORT-1]") {
  std::vector<candidate> list;
  sort_by_preference(list);
  CHECK(list.empty());
  list.push_back(towards("192.0.2.1", ""));
  sort_by_preference(list);
  CHECK(destinations(list) == std::vector<std::string>{"192.0.2.1"});
}

TEST_CASE("address_order: comparing the other way round gives the opposite",
          "[address_order][SORT-1]") {
  std::vector<candidate> all;
  for (const example& e : rfc_examples())
    all.insert(all.end(), e.in_order.begin(), e.in_order.end());
  for (const candidate& a : all) {
    for (const candidate& b : all) {
      const int there = compare(a, b, glibc_policy());
      const int back = compare(b, a, glibc_policy());
      CHECK((there < 0) == (back > 0));
      CHECK((there == 0) == (back == 0));
    }
  }
}

TEST_CASE("address_order: what lies inside a NAT64's prefix is sorted as IPv4",
          "[address_order][NAT64-1]") {
  // By rule 9 the second would be nearer to the source than the first.
  candidate native = towards("2a00:1450::1", "2001:db8:1::2");
  candidate behind = towards("2001:db8:1:64::c633:640a", "2001:db8:1::2");
  behind.translation_length = 96;
  check_from_every_order({"native before translated", {native, behind}}, glibc_policy());
  check_from_every_order({"native before translated", {native, behind}}, rfc6724_policy());
  behind.translation_length = 0;
  check_from_every_order({"not known to be translated", {behind, native}}, glibc_policy());

  // An IPv4 path of the host's own (a VPN's) goes before a translator's, which has no IPv4 source.
  behind.translation_length = 96;
  check_from_every_order({"a route of its own", {towards("203.0.113.9", "192.0.2.2"), behind}},
                         glibc_policy());
  check_from_every_order({"no route at all", {behind, towards("203.0.113.9", "")}}, glibc_policy());
}

TEST_CASE("address_order: scopes of multicast and of what only looks link-local",
          "[address_order][SORT-1]") {
  // RFC 6724 s3.1
  check_from_every_order({"multicast says its scope",
                          {towards("ff02::1", "fe80::2"), towards("ff0e::1", "2001:db8::2")}},
                         glibc_policy());
  for (const char* global : {"2080::1", "20c0::1"}) {
    check_from_every_order(
        {global, {towards(global, "2001:db8::2"), towards("192.0.2.1", "192.0.2.9")}},
        glibc_policy());
  }
}

TEST_CASE("address_order: a ULA of this host's /48 to the bit is known-local",
          "[address_order][SORT-1]") {
  policy_table policy = rfc6724_policy();
  policy.known_local_ula = true;
  check_from_every_order(
      {"48 bits",
       {towards("fd00:1:2:8000::1", "fd00:1:2::9"), towards("2001:db8::1", "2001:db8::2")}},
      policy);
  check_from_every_order(
      {"47 bits", {towards("2001:db8::1", "2001:db8::2"), towards("fd00:1:3::1", "fd00:1:2::9")}},
      policy);
}

TEST_CASE("address_order: behind a NAT64 no prefix is longer than another",
          "[address_order][NAT64-1]") {
  std::vector<candidate> list = {towards("2a00:64::c633:6401", "2001:db8::2"),
                                 towards("2001:db8:64::c633:6402", "2001:db8::2")};
  for (candidate& c : list) c.translation_length = 96;
  const auto before = destinations(list);
  sort_by_preference(list);
  CHECK(destinations(list) == before);
  CHECK(counted_family(list[0]) == family::ipv4);
  CHECK(counted_family(towards("2001:db8::1", "")) == family::ipv6);
}

TEST_CASE("address_order: what a list holds", "[address_order]") {
  const std::vector<candidate> list = {towards("2001:db8::1", ""), towards("192.0.2.1", "")};
  CHECK(holds(list, ip("192.0.2.1")));
  CHECK_FALSE(holds(list, ip("192.0.2.2")));
  candidate elsewhere = towards("192.0.2.1", "");
  CHECK(holds(list, elsewhere));
  elsewhere.port = 443;
  CHECK_FALSE(holds(list, elsewhere));
}

}  // namespace happy
