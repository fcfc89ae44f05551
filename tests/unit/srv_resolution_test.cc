// A lookup by way of SRV records, on virtual time: what is asked for, when, and in what order it is tried.

#include <map>

#include "resolver/endpoints.h"
#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/resolution_script.h"
#include "tests/support/srv_records.h"

namespace happy {
namespace {

using kind = resolution::action::kind;
using test::at;
using test::srv;
using names = std::vector<std::string>;

constexpr const char* domain = "example.test";
constexpr const char* owner = "_xmpp-client._tcp.example.test";

class script : public test::resolution_script {
 public:
  explicit script(resolution::settings s = {}) : resolution_script(with_srv(s)) {}

  // What is sent when the SRV answer has come, 20 ms after the start.
  names asked_after(const std::vector<service_record>& records) {
    sent(0);
    srv_answer(records, 20);
    return sent(20);
  }

  void srv_answer(const std::vector<service_record>& records, int now) {
    service_answer(owner, record_type::srv, records, now, answer_kind::name_error);
  }

 private:
  static resolution::settings with_srv(resolution::settings s) {
    s.name = domain;
    s.service_name = owner;
    s.service_type = record_type::srv;
    if (s.deadline == never) s.deadline = at(10'000);
    return s;
  }
};

// "ADDRESS PORT PRIORITY" in the order of sort_by_preference().
names sorted(const resolution& state) {
  std::vector<candidate> list = own_candidates(state);
  sort_by_preference(list);
  names lines;
  for (const candidate& c : list) {
    const bool own = c.service_priority == no_service_priority;
    lines.push_back(test::text(c.destination) + " " + std::to_string(c.port) + " " +
                    (own ? "-" : std::to_string(c.service_priority)));
    CHECK(c.in_turn);
  }
  return lines;
}

}  // namespace

TEST_CASE(
    "srv: of twenty targets of one priority those drawn first are asked for, and the spare one",
    "[srv][resolution][XMPP-1]") {
  std::map<std::string, int> asked;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    script s({.seed = seed});
    std::vector<service_record> records{srv(9, 0, 1, "spare.test")};
    for (int i = 0; i < 20; ++i)
      records.push_back(srv(0, i == 19 ? 1000 : 1, 1, std::to_string(i) + ".test"));
    s.asked_after(records);
    CHECK(s.machine.services().size() == max_srv_targets);
    CHECK(s.machine.services().back().record.target == "spare.test");
    for (const auto& t : s.machine.services()) ++asked[t.record.target];
  }
  CHECK(asked["19.test"] == 300);  // its weight
  for (int i = 0; i < 19; ++i) CHECK(asked[std::to_string(i) + ".test"] > 30);
}

TEST_CASE("srv: AAAA and A for each target of the first priority in order, back to back",
          "[srv][resolution][XMPP-3]") {
  // "starting with an AAAA query for the first host, immediately followed by an A query for the first host.
  // This is immediately followed by an AAAA query, and then an A query, for the second host."
  script s;
  CHECK(s.sent(0) == names{"SRV " + std::string(owner)});
  s.srv_answer({srv(5, 0, 443, "c.test"), srv(0, 1000, 5222, "a.test"), srv(0, 0, 5222, "b.test")},
               20);
  const auto& targets = s.machine.services();
  REQUIRE(targets.size() == 3);
  const std::string one = targets[0].record.target;
  const std::string two = targets[1].record.target;
  CHECK(s.sent(20) == names{"AAAA " + one, "A " + one, "AAAA " + two, "A " + two});
  s.address_answer("a.test", record_type::aaaa, {"2001:db8::1"}, 30);
  s.address_answer("a.test", record_type::a, {"192.0.2.1"}, 30);
  s.address_answer("b.test", record_type::aaaa, {"2001:db8::2"}, 30);
  CHECK(s.sent(30).empty());
  s.address_answer("b.test", record_type::a, {}, 40);
  CHECK(s.sent(40) == names{"AAAA c.test", "A c.test"});
}

TEST_CASE("srv: the first target's IPv6 address is acted on", "[srv][resolution][XMPP-4]") {
  script s;
  s.sent(0);
  s.srv_answer({srv(0, 0, 5222, "a.test")}, 20);
  s.sent(20);
  s.address_answer("a.test", record_type::aaaa, {"2001:db8::1"}, 30);
  CHECK(s.state(30) == "wait until 55");  // the companion's delay
  s.address_answer("a.test", record_type::a, {"192.0.2.1"}, 40);
  s.sent(40);
  CHECK(s.state(40) == "finished: all queries answered");
}

TEST_CASE("srv: the Resolution Delay also where only other targets have answered",
          "[srv][resolution][XMPP-4]") {
  // "the 'Resolution Delay' is also applied when responses for hosts other than the first target are
  // received prior to receiving responses for the first target."
  script s;
  s.sent(0);
  s.srv_answer({srv(0, 1, 5222, "a.test"), srv(0, 1, 5222, "b.test")}, 20);
  s.sent(20);
  const std::string lead = s.machine.services()[0].record.target;
  const std::string later = s.machine.services()[1].record.target;
  s.address_answer(later, record_type::aaaa, {"2001:db8::2"}, 30);
  s.address_answer(later, record_type::a, {"192.0.2.2"}, 30);
  CHECK(s.state(30) == "wait until 80");
  CHECK(s.state(79) == "wait until 80");
  SECTION("it passes") { CHECK(s.state(80) == "finished: resolution delay passed"); }
  SECTION("the first target's IPv4 address does not shorten it") {
    s.address_answer(lead, record_type::a, {"192.0.2.1"}, 40);
    CHECK(s.state(40) == "wait until 80");
  }
  SECTION("its IPv6 address does") {
    s.address_answer(lead, record_type::aaaa, {"2001:db8::1"}, 40);
    CHECK(s.state(40) == "wait until 65");
  }
  SECTION("where it has no address the next one counts") {
    s.address_answer(lead, record_type::aaaa, {}, 40);
    s.address_answer(lead, record_type::a, {}, 40);
    s.sent(40);
    CHECK(s.state(40) == "finished: all queries answered");
  }
}

TEST_CASE("srv: by priority, then by weight between rules 8 and 9; each at its port",
          "[srv][XMPP-1][XMPP-2][XMPP-5]") {
  // "prefers an addresses by their SRV-defined Weight attribute SHOULD be added before rule 9"
  script s;
  s.sent(0);
  s.srv_answer({srv(5, 9, 443, "c.test"), srv(0, 60000, 5222, "a.test"), srv(0, 0, 5223, "b.test")},
               0);
  REQUIRE(s.machine.services()[0].record.target == "a.test");  // drawn so with 59999 of 60000 seeds
  s.sent(0);
  s.address_answer("b.test", record_type::aaaa, {"2001:db8::b"}, 1);
  s.address_answer("b.test", record_type::a, {"192.0.2.2"}, 1);
  s.address_answer("a.test", record_type::aaaa, {"2001:db8::a"}, 1);
  s.address_answer("a.test", record_type::a, {"192.0.2.1"}, 1);
  s.sent(1);
  s.address_answer("c.test", record_type::a, {"192.0.2.3"}, 2);
  s.address_answer("c.test", record_type::aaaa, {}, 2);
  s.sent(2);
  s.address_answer(domain, record_type::a, {"192.0.2.9"}, 3);
  CHECK(sorted(s.machine) == names{"2001:db8::a 5222 0", "2001:db8::b 5223 0", "192.0.2.1 5222 0",
                                   "192.0.2.2 5223 0", "192.0.2.3 443 5", "192.0.2.9 0 -"});
}

TEST_CASE(
    "srv: the domain's own addresses where there is no record, no target with an address, no "
    "answer",
    "[srv][resolution][XMPP-6]") {
  // RFC 6120 s3.2.2: "If the SRV lookup aborts or fails, the fallback SHOULD be a normal A/AAAA address
  // record resolution".
  const names own{"AAAA example.test", "A example.test"};
  script s;
  s.sent(0);
  SECTION("no record") {
    s.srv_answer({}, 20);
    CHECK(s.sent(20) == own);
    CHECK_FALSE(s.machine.by_srv());
  }
  SECTION("no target with an address") {
    s.srv_answer({srv(0, 0, 5222, "a.test")}, 20);
    s.sent(20);
    s.address_answer("a.test", record_type::aaaa, {}, 30);
    CHECK(s.state(30) != "finished: all queries answered");
    s.address_answer("a.test", record_type::a, {}, 30);
    CHECK(s.sent(30) == own);
  }
  SECTION("no answer within a second") {
    CHECK(s.state(0) == "wait until 1000");
    CHECK(s.sent(999).empty());
    CHECK(s.sent(1000) == own);
    s.srv_answer({srv(0, 0, 5222, "a.test")}, 1010);
    CHECK(s.sent(1010).empty());
  }
  s.machine.poll(at(1020));
  if (!s.machine.find(domain, record_type::a)) return;
  s.address_answer(domain, record_type::aaaa, {}, 1040);
  s.address_answer(domain, record_type::a, {"192.0.2.9"}, 1040);
  CHECK(s.state(1040) == "finished: all queries answered");
}

// What the next priority and the name wait for at most: srv_targets_patience, from the queries on.
const std::vector<service_record> two_priorities{srv(0, 0, 5222, "a.test"),
                                                 srv(5, 0, 443, "c.test")};

TEST_CASE("srv: a family of the first target that keeps silent holds nothing up",
          "[srv][resolution][XMPP-3][XMPP-4]") {
  script s;
  CHECK(s.asked_after(two_priorities) == names{"AAAA a.test", "A a.test"});
  s.address_answer("a.test", record_type::a, {"192.0.2.1"}, 30);
  CHECK(s.state(30) == "wait until 80");
  CHECK(s.state(80) == "finished: resolution delay passed");
  CHECK(s.machine.asks_more_at() == at(1020));
  CHECK(s.sent(1019).empty());
  CHECK(s.sent(1020) == names{"AAAA c.test", "A c.test"});
  s.address_answer("c.test", record_type::aaaa, {}, 1030);
  s.address_answer("c.test", record_type::a, {"192.0.2.3"}, 1030);
  CHECK(s.sent(1030) == names{"AAAA example.test", "A example.test"});
  CHECK(s.machine.asks_more_at() == never);
  s.address_answer("a.test", record_type::aaaa, {"2001:db8::1"},
                   1400);  // late, but of the first priority
  CHECK(sorted(s.machine) == names{"2001:db8::1 5222 0", "192.0.2.1 5222 0", "192.0.2.3 443 5"});
}

TEST_CASE("srv: after a first target that keeps silent the next priority decides",
          "[srv][resolution][XMPP-3][XMPP-4]") {
  script s;
  s.asked_after(two_priorities);
  CHECK(s.state(20) == "wait until 1020");
  CHECK(s.sent(1020) == names{"AAAA c.test", "A c.test"});
  SECTION("its first target's IPv6 address is acted on") {
    s.address_answer("c.test", record_type::aaaa, {"2001:db8::3"}, 1040);
    CHECK(s.state(1040) == "wait until 1065");  // the companion's delay
    s.address_answer("c.test", record_type::a, {"192.0.2.3"}, 1050);
    CHECK(s.state(1050) == "query");
    s.sent(1050);
    CHECK(s.state(1050) == "finished: all queries answered");
  }
  SECTION("what comes late from the better one goes first") {
    s.address_answer("c.test", record_type::a, {"192.0.2.3"}, 1040);
    CHECK(s.state(1040) == "wait until 1090");
    s.address_answer("a.test", record_type::aaaa, {"2001:db8::1"}, 1050);
    CHECK(s.state(1050) == "wait until 1075");
    CHECK(sorted(s.machine) == names{"2001:db8::1 5222 0", "192.0.2.3 443 5"});
  }
}

TEST_CASE(
    "srv: one target of several that keeps silent is passed over, and goes first if it comes late",
    "[srv][resolution][XMPP-3][XMPP-4]") {
  script s;
  s.asked_after(
      {srv(0, 60000, 5222, "a.test"), srv(0, 0, 5223, "b.test"), srv(5, 0, 443, "c.test")});
  REQUIRE(s.machine.services()[0].record.target == "a.test");
  s.address_answer("b.test", record_type::aaaa, {"2001:db8::2"}, 30);
  s.address_answer("b.test", record_type::a, {}, 30);
  CHECK(s.state(30) == "wait until 80");  // for the first target
  CHECK(s.state(80) == "finished: resolution delay passed");
  CHECK(s.sent(1019).empty());
  CHECK(s.sent(1020) == names{"AAAA c.test", "A c.test"});
  s.address_answer("a.test", record_type::aaaa, {"2001:db8::1"}, 1500);
  CHECK(sorted(s.machine) == names{"2001:db8::1 5222 0", "2001:db8::2 5223 0"});
}

TEST_CASE(
    "srv: where every target keeps silent the name's own addresses count, as without SRV records",
    "[srv][resolution][XMPP-6]") {
  script s;
  s.asked_after(two_priorities);
  s.sent(1020);
  s.address_answer("c.test", record_type::a, {}, 1030);
  CHECK(s.sent(2019).empty());
  CHECK(s.sent(2020) == names{"AAAA example.test", "A example.test"});
  SECTION("they are there") {
    s.address_answer(domain, record_type::aaaa, {"2001:db8::9"}, 2030);
    CHECK(s.state(2030) == "wait until 2055");
    s.address_answer(domain, record_type::a, {"192.0.2.9"}, 2040);
    CHECK(s.state(2040) == "finished: all queries answered");
    CHECK(sorted(s.machine) == names{"2001:db8::9 0 -", "192.0.2.9 0 -"});
  }
  SECTION("there are none: a late answer of a target is all that is left") {
    s.address_answer(domain, record_type::aaaa, {}, 2030);
    s.address_answer(domain, record_type::a, {}, 2030);
    CHECK(s.state(2030) == "wait until 10000");
    CHECK(s.state(10'000) == "finished: nameservers out of time");
    s.address_answer("a.test", record_type::aaaa, {"2001:db8::1"}, 3000);
    CHECK(s.state(3000) == "wait until 3025");
    CHECK(s.state(3025) == "finished: preferred family answered");
  }
}

TEST_CASE("srv: a target that somebody else than the DNS knows is passed over",
          "[srv][resolution]") {
  resolution::settings wanted;
  wanted.in_dns = [](const std::string& target) { return target != "a.test"; };
  SECTION("in an answer") {
    script s(wanted);
    CHECK(s.asked_after(two_priorities) == names{"AAAA c.test", "A c.test"});
  }
  SECTION("all of them: the name counts") {
    script s(wanted);
    CHECK(s.asked_after({srv(0, 0, 5222, "a.test")}) ==
          names{"AAAA example.test", "A example.test"});
  }
  SECTION("among the program's own") {
    wanted.name = "b.test";
    wanted.companions = {srv(0, 1, 5222, "b.test"), srv(0, 1, 443, "a.test"),
                         srv(0, 1, 443, "c.test")};
    resolution machine(wanted);
    CHECK(machine.services().size() == 2);
    CHECK_FALSE(machine.find("a.test", record_type::a));
  }
}

TEST_CASE("srv: one host at two priorities is waited for once", "[srv][resolution]") {
  script s;
  s.asked_after({srv(0, 0, 5222, "a.test"), srv(5, 0, 443, "a.test")});
  CHECK(s.sent(1019).empty());
  CHECK(s.sent(1020) == names{"AAAA example.test", "A example.test"});
}

TEST_CASE("srv: where libc gives up sooner, the name is asked for by then, and has a chance",
          "[srv][resolution][XMPP-6]") {
  const names own{"AAAA example.test", "A example.test"};
  script s({.deadline = at(700), .last_chance = milliseconds(700)});
  SECTION("SRV keeps silent") {
    s.sent(0);
    CHECK(s.state(0) == "wait until 700");
    CHECK(s.sent(700) == own);
  }
  SECTION("its targets do: none goes unasked") {
    s.asked_after(two_priorities);
    CHECK(s.state(20) == "wait until 700");
    CHECK(s.sent(700) == names{"AAAA c.test", "A c.test", own[0], own[1]});
  }
  CHECK(s.state(700) == "wait until 1400");
  CHECK(s.state(1400) == "finished: nameservers out of time");
}

TEST_CASE("srv: the only target \".\" means that the service is not there",
          "[srv][resolution][XMPP-6]") {
  script s;
  s.sent(0);
  s.srv_answer({srv(0, 0, 0, "")}, 20);
  CHECK(s.sent(20).empty());
  CHECK(s.state(20) == "finished: all queries answered");
  CHECK(s.machine.not_available());
}

}  // namespace happy
