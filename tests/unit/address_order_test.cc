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

void check_from_every_order(const example& e, policy_table policy) {
  INFO(e.why);
  const auto expected = destinations(e.in_order);
  auto list = e.in_order;
  sort_by_preference(list, policy);
  CHECK(destinations(list) == expected);
  std::reverse(list.begin(), list.end());
  sort_by_preference(list, policy);
  CHECK(destinations(list) == expected);
}

// RFC 6724 s10.2, without its examples for rules 3 and 4 (deprecated and home addresses).
const std::vector<example>& rfc_examples() {
  static const std::vector<example> examples = {
      {"prefer matching scope",
       {towards("2001:db8:1::1", "2001:db8:1::2"), towards("198.51.100.121", "169.254.13.78")}},
      {"prefer matching scope",
       {towards("198.51.100.121", "198.51.100.117"), towards("2001:db8:1::1", "fe80::1")}},
      {"prefer higher precedence",
       {towards("2001:db8:1::1", "2001:db8:1::2"), towards("10.1.2.3", "10.1.2.4")}},
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

}  // namespace happy
