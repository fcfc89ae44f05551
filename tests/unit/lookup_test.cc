// What becomes of a lookup whose connection is there, on virtual time: nothing is sent.

#include "resolver/lookup.h"

#include "tests/support/catch.h"
#include "tests/support/libc_functions.h"
#include "tests/support/virtual_time.h"

namespace happy {
namespace {

using test::at;

lookup of_one_name() {
  name_plan plan;
  plan.name = "www.example.com";
  plan.steps.push_back({.name = plan.name});
  plan.config = std::make_shared<const resolver_config>();
  return {1, plan, {.deadline = at(10'000)}};
}

}  // namespace

TEST_CASE("lookup: answers are taken in for a second after success", "[lookup][ATTEMPT-3]") {
  const test::with_functions functions;  // it asks for the families that this host has
  lookup l = of_one_name();
  CHECK(!l.has_succeeded());
  CHECK(!l.is_closed(at(9'000)));
  l.succeed(at(300));
  CHECK(l.has_succeeded());
  CHECK(!l.is_closed(at(1'299)));
  CHECK(l.is_closed(at(1'300)));
  CHECK(!l.dropped());
}

TEST_CASE("lookup: a second connection does not keep it open longer", "[lookup][ATTEMPT-3]") {
  const test::with_functions functions;  // it asks for the families that this host has
  lookup l = of_one_name();
  l.succeed(at(300));
  l.succeed(at(900));
  CHECK(l.is_closed(at(1'300)));
}

}  // namespace happy
