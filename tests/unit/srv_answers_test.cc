// SRV answers that a program has asked for by itself, and the lookups of their targets that follow.

#include "resolver/srv_answers.h"

#include "resolver/endpoints.h"
#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/srv_records.h"
#include "tests/support/virtual_time.h"

namespace happy {
namespace {

using kind = resolution::action::kind;
using test::at;
using test::ip;
using test::srv;
using test::targets_of;
using names = std::vector<std::string>;

}  // namespace

TEST_CASE("srv: the targets of one priority that a program has not looked up yet go with a lookup",
          "[srv][XMPP-2]") {
  srv_answers known;
  std::uint32_t random = 1;
  known.note({srv(0, 1, 5222, "a.test"), srv(0, 1, 443, "b.test"), srv(0, 1, 80, "c.test"),
              srv(5, 1, 5222, "d.test"), srv(9, 1, 0, "")},
             at(0));
  CHECK(known.follow("other.test", random, at(1)).records.empty());
  const srv_companions first = known.follow("A.test.", random, at(1));
  CHECK(first.port == 5222);
  REQUIRE(first.records.size() == 3);
  CHECK(first.records[0].target == "a.test");
  const srv_companions second = known.follow("b.test", random, at(1));
  CHECK(second.port == 443);
  CHECK(targets_of(second.records) == names{"b.test", "c.test"});
  CHECK(known.follow("b.test", random, at(1)).records.empty());  // once
  CHECK(known.follow("c.test", random, at(1)).records.empty());  // nobody is left beside it
  CHECK(known.follow("d.test", random, at(1)).records.empty());
  CHECK(known.is_target("d.test", at(60'000)));
  CHECK_FALSE(known.is_target("d.test", at(60'001)));
  CHECK_FALSE(known.is_target("other.test", at(1)));
  CHECK(known.is_target("B.test", at(1), 443));
  CHECK_FALSE(known.is_target("b.test", at(1), 5222));
  CHECK_FALSE(known.is_target("b.test", at(60'001), 443));
}

TEST_CASE("srv: a host of several services and ports is told by the port", "[srv][XMPP-2]") {
  srv_answers known;
  std::uint32_t random = 1;
  known.note({srv(0, 1, 5222, "a.test"), srv(0, 1, 443, "a.test"), srv(0, 1, 5222, "b.test")},
             at(0));
  known.note({srv(0, 1, 5269, "a.test"), srv(0, 1, 5269, "b.test")}, at(0));  // of another service
  const srv_companions direct =
      known.follow("a.test", random, at(1), 5223);  // of none that was asked for
  CHECK(direct.records.empty());
  CHECK(direct.port == 0);
  const srv_companions first = known.follow("a.test", random, at(1), 5222);
  CHECK(first.port == 5222);
  CHECK(first.records.size() == 3);  // its own other port, too
  const srv_companions second = known.follow("a.test", random, at(1), 443);
  CHECK(second.port == 443);
  CHECK(targets_of(second.records) == names{"a.test", "b.test"});
  CHECK(known.follow("a.test", random, at(1), 5269).records.size() == 2);
}

TEST_CASE("srv: old answers are followed by no race, and few are kept", "[srv]") {
  srv_answers known;
  std::uint32_t random = 1;
  known.note({srv(0, 1, 1, "a.test"), srv(0, 1, 1, "b.test")}, at(0));
  CHECK(known.follow("a.test", random, at(60'001)).records.empty());
  for (int i = 0; i < 40; ++i) known.note({srv(0, 1, 1, std::to_string(i))}, at(0));
  CHECK_FALSE(known.is_target("0", at(0)));
  CHECK(known.is_target("39", at(0)));
}

TEST_CASE(
    "srv: a program's own answer lets other targets join the race of its lookup, which waits for "
    "none",
    "[srv][resolution]") {
  resolution::settings wanted;
  wanted.name = "a.test";
  wanted.companions = {srv(0, 1, 5222, "a.test"), srv(0, 1, 443, "b.test")};
  resolution machine(wanted);
  while (machine.poll(at(0)).what == kind::query) {
  }
  CHECK(machine.query_count() == 4);
  const auto reply = [&](const char* name, record_type type, const char* where) {
    answer a;
    a.type = type;
    a.kind = answer_kind::positive;
    a.addresses.push_back(ip(where));
    machine.handle(machine.find(name, type).value(), a, at(1));
  };
  reply("a.test", record_type::aaaa, "2001:db8::a");
  reply("a.test", record_type::a, "192.0.2.1");
  CHECK(machine.poll(at(1)).what == kind::finished);
  reply("b.test", record_type::a, "192.0.2.2");
  CHECK(own_candidates(machine).size() == 2);
  const std::vector<candidate> raced = service_candidates(machine, 5222, false);
  REQUIRE(raced.size() == 3);
  CHECK(raced.back().destination == ip("192.0.2.2"));
  CHECK(raced.back().port == 443);
  CHECK(raced.back().service_priority == 0);
}

}  // namespace happy
