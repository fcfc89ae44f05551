#include "resolver/v4_mapping.h"

#include <netdb.h>

#include "tests/support/catch.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using kind = answer_kind;

constexpr time_point start{};

answer make(record_type type, kind how) {
  answer a;
  a.type = type;
  a.kind = how;
  if (how == kind::positive)
    a.addresses.push_back(type == record_type::a ? make_ipv4(192, 0, 2, 1)
                                                 : from_in6_addr(in6addr_loopback));
  return a;
}

// AAAA and A have been answered so; timed_out: not at all.
resolution answered(kind ipv6, kind ipv4) {
  resolution r({.ipv4_is_substitute = true, .name = "a.test"});
  for (const auto& [type, how] : {std::pair(record_type::aaaa, ipv6), {record_type::a, ipv4}}) {
    if (how != kind::timed_out) r.handle(*r.find("a.test", type), make(type, how), start);
  }
  return r;
}

name_search searching(std::vector<std::string> domains, name_verdict last) {
  resolver_config config;
  config.search = std::move(domains);
  name_search search(search_steps("a.test", config.search.empty(), config));
  while (search.go_on(last)) {
  }
  return search;
}

std::optional<int> code(kind ipv6, kind ipv4) {
  return mapped_error_code(answered(ipv6, ipv4), searching({}, name_verdict::no_name));
}

}  // namespace

TEST_CASE("v4_mapping: for AF_INET6 alone, with the flag", "[v4_mapping]") {
  CHECK(mapping_of(AI_V4MAPPED, AF_INET6) == v4_mapping::substitute);
  CHECK(mapping_of(AI_V4MAPPED | AI_ALL, AF_INET6) == v4_mapping::all);
  CHECK(mapping_of(AI_ALL, AF_INET6) == v4_mapping::none);
  CHECK(mapping_of(AI_V4MAPPED | AI_ALL, AF_UNSPEC) == v4_mapping::none);
  CHECK(mapping_of(AI_V4MAPPED, AF_INET) == v4_mapping::none);
}

TEST_CASE("v4_mapping: without addresses one family's reason is not the other's", "[v4_mapping]") {
  CHECK(code(kind::no_data, kind::no_data) == EAI_NODATA);
  CHECK(code(kind::name_error, kind::no_data) == EAI_NONAME);
  CHECK(code(kind::no_data, kind::name_error) == EAI_NONAME);
  CHECK(code(kind::timed_out, kind::timed_out) == EAI_AGAIN);
  CHECK(code(kind::timed_out, kind::no_data) == EAI_NODATA);
  CHECK(code(kind::timed_out, kind::name_error) == EAI_NONAME);
  CHECK(code(kind::hollow, kind::no_data) == std::nullopt);
  CHECK(code(kind::not_sent, kind::not_sent) == std::nullopt);
}

TEST_CASE("v4_mapping: with a search list only silence is the same for both", "[v4_mapping]") {
  const auto silent = searching({"corp.test"}, name_verdict::out_of_time);
  CHECK(mapped_error_code(answered(kind::timed_out, kind::timed_out), silent) == EAI_AGAIN);
  const auto absent = searching({"corp.test"}, name_verdict::no_name);
  CHECK(!mapped_error_code(answered(kind::name_error, kind::name_error), absent));
}

TEST_CASE("v4_mapping: what a search could bring from another name is left to glibc",
          "[v4_mapping]") {
  const auto agrees = [](kind ipv6, kind ipv4, v4_mapping how, bool searched) {
    return mapping_agrees(answered(ipv6, ipv4), how, searched);
  };
  CHECK(agrees(kind::no_data, kind::positive, v4_mapping::substitute, false));
  CHECK(!agrees(kind::no_data, kind::positive, v4_mapping::substitute, true));
  CHECK(agrees(kind::timed_out, kind::positive, v4_mapping::substitute, true));
  CHECK(agrees(kind::positive, kind::no_data, v4_mapping::substitute, true));
  CHECK(!agrees(kind::positive, kind::no_data, v4_mapping::all, true));
  CHECK(agrees(kind::positive, kind::positive, v4_mapping::all, true));
  CHECK(agrees(kind::positive, kind::timed_out, v4_mapping::all, true));

  answer in_disguise = make(record_type::aaaa, kind::no_data);
  in_disguise.kind = kind::positive;
  in_disguise.addresses.push_back(mapped(make_ipv4(192, 0, 2, 1)));
  resolution r({.name = "a.test"});
  r.handle(*r.find("a.test", record_type::aaaa), in_disguise, start);
  CHECK(!mapping_agrees(r, v4_mapping::all, false));
}

TEST_CASE("v4_mapping: the list is of mapped addresses, or of those that they stand in for",
          "[v4_mapping]") {
  const test::with_functions functions;
  CHECK(mapped_order(answered(kind::no_data, kind::positive)) ==
        std::vector{mapped(make_ipv4(192, 0, 2, 1))});
  CHECK(mapped_order(answered(kind::positive, kind::positive)) ==
        std::vector{from_in6_addr(in6addr_loopback)});
}

}  // namespace happy
