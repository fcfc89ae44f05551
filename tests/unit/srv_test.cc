// SRV records: the order of targets, and their resolution on virtual time.

#include <map>

#include "resolver/endpoints.h"
#include "resolver/srv_answers.h"
#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/race_script.h"

namespace happy {
namespace {

using kind = resolution::action::kind;
using test::ip;
using names = std::vector<std::string>;

constexpr const char* domain = "example.test";
constexpr const char* owner = "_xmpp-client._tcp.example.test";

time_point at(int ms) { return time_point(milliseconds(ms)); }

service_record srv(std::uint16_t priority, std::uint16_t weight, std::uint16_t port,
                   const std::string& target) {
  service_record r;
  r.priority = priority;
  r.weight = weight;
  r.port = port;
  r.target = target;
  r.usable = !target.empty();
  return r;
}

names targets_of(const std::vector<service_record>& records) {
  names list;
  for (const service_record& r : records) list.push_back(r.target);
  return list;
}

class script {
 public:
  explicit script(resolution::settings s = {}) : machine(with_srv(s)) {}

  // What is sent when the SRV answer has come, 20 ms after the start.
  names asked_after(const std::vector<service_record>& records) {
    sent(0);
    srv_answer(records, 20);
    return sent(20);
  }

  // The queries that are sent now, as "AAAA a.test".
  names sent(int now) {
    names list;
    for (auto next = machine.poll(at(now)); next.what == kind::query; next = machine.poll(at(now)))
      list.push_back(type_name(machine.type_of(next.query)) + " " + machine.name_of(next.query));
    return list;
  }

  void srv_answer(const std::vector<service_record>& records, int now) {
    answer a;
    a.type = record_type::srv;
    a.kind = records.empty() ? answer_kind::name_error : answer_kind::positive;
    a.services = records;
    machine.handle(machine.find(owner, a.type).value(), a, at(now));
  }

  void answer_to(const std::string& name, record_type type, const names& found, int now) {
    answer a;
    a.type = type;
    a.kind = found.empty() ? answer_kind::no_data : answer_kind::positive;
    for (const std::string& text : found) a.addresses.push_back(ip(text));
    machine.handle(machine.find(name, type).value(), a, at(now));
  }

  std::string state(int now) {
    const auto next = machine.poll(at(now));
    if (next.what == kind::finished) return std::string("finished: ") + to_text(next.reason);
    if (next.what == kind::query) return "query";
    const auto until = next.until.time_since_epoch();
    return "wait until " + std::to_string(std::chrono::duration_cast<milliseconds>(until).count());
  }

  resolution machine;

 private:
  static resolution::settings with_srv(resolution::settings s) {
    s.name = domain;
    s.service_name = owner;
    s.service_type = record_type::srv;
    if (s.deadline == never) s.deadline = at(10'000);
    return s;
  }
  static std::string type_name(record_type type) {
    return type == record_type::srv ? "SRV" : type == record_type::aaaa ? "AAAA" : "A";
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

TEST_CASE("srv: lower priorities first", "[srv][XMPP-1]") {
  // "sorts and orders the resulting list of target hosts, as defined in the 'Usage rules' section of RFC
  // 2782"
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    std::vector<service_record> records{srv(20, 900, 1, "c"), srv(10, 0, 1, "a"),
                                        srv(30, 0, 1, "d"), srv(10, 0, 1, "a")};
    std::uint32_t random = seed;
    order_srv(records, random);
    CHECK(targets_of(records) == names{"a", "a", "c", "d"});
  }
}

TEST_CASE("srv: where there are too many targets, each priority keeps what it can",
          "[srv][XMPP-1]") {
  const auto sizes = [](const std::vector<std::size_t>& groups, std::size_t most) {
    std::vector<service_record> records;
    for (std::size_t priority = 0; priority < groups.size(); ++priority) {
      for (std::size_t i = 0; i < groups[priority]; ++i)
        records.push_back(srv(static_cast<std::uint16_t>(priority), 0, 1, std::to_string(i)));
    }
    limit_srv(records, most);
    std::vector<std::size_t> left(groups.size(), 0);
    for (const service_record& r : records) {
      CHECK(r.target == std::to_string(left[r.priority]));  // the first ones stay
      ++left[r.priority];
    }
    return left;
  };
  using counts = std::vector<std::size_t>;
  CHECK(sizes({3, 2}, 8) == counts{3, 2});
  CHECK(sizes({20, 1, 1}, 8) == counts{6, 1, 1});
  CHECK(sizes({1, 1, 20}, 8) == counts{1, 1, 6});
  CHECK(sizes({5, 5}, 7) == counts{4, 3});  // the better priority has more
  CHECK(sizes({1, 1, 1, 1, 1}, 3) == counts{1, 1, 1, 0, 0});
  CHECK(sizes({}, 3) == counts{});
}

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

TEST_CASE("srv: the first target is drawn by the weights", "[srv][XMPP-1]") {
  // "The probability of [a server] being selected is proportional to its weight": chi-squared with three
  // degrees of freedom; 16.27 is passed by chance once in a thousand seeds, and the seed is fixed.
  const std::map<std::string, int> weights{{"a", 10}, {"b", 20}, {"c", 30}, {"d", 40}};
  constexpr int draws = 10'000;
  std::map<std::string, int> first;
  std::uint32_t random = 20240919;
  for (int i = 0; i < draws; ++i) {
    std::vector<service_record> records;
    for (const auto& [name, weight] : weights)
      records.push_back(srv(1, static_cast<std::uint16_t>(weight * 100), 1, name));
    order_srv(records, random);
    ++first[records.front().target];
  }
  double chi_squared = 0;
  for (const auto& [name, weight] : weights) {
    const double expected = draws * weight / 100.0;
    const double off = first[name] - expected;
    chi_squared += off * off / expected;
  }
  CAPTURE(first);
  CHECK(chi_squared < 16.27);
  CHECK(chi_squared > 0);
}

TEST_CASE(
    "srv: equal weights in varying order; without weight there is little chance of being first",
    "[srv][XMPP-1]") {
  for (const std::uint16_t weight : {std::uint16_t{0}, std::uint16_t{7}}) {
    std::map<std::string, int> first;
    std::uint32_t random = 1;
    for (int i = 0; i < 3000; ++i) {
      std::vector<service_record> records{srv(1, weight, 1, "a"), srv(1, weight, 1, "b"),
                                          srv(1, weight, 1, "c")};
      order_srv(records, random);
      ++first[records.front().target];
    }
    CAPTURE(weight, first);
    for (const char* name : {"a", "b", "c"}) CHECK(first[name] > 700);
  }
  int lightest = 0;
  std::uint32_t random = 1;
  for (int i = 0; i < 1000; ++i) {
    std::vector<service_record> records{srv(1, 99, 1, "heavy"), srv(1, 0, 1, "light")};
    order_srv(records, random);
    if (records.front().target == "light") ++lightest;
  }
  CHECK(lightest > 0);  // "a very small chance of being selected": 1 of 100
  CHECK(lightest < 40);
}

TEST_CASE("srv: one seed, one order", "[srv][XMPP-1]") {
  const auto order = [](std::uint32_t seed) {
    std::vector<service_record> records;
    for (const char* name : {"a", "b", "c", "d", "e"}) records.push_back(srv(1, 5, 1, name));
    order_srv(records, seed);
    return targets_of(records);
  };
  CHECK(order(7) == order(7));
  CHECK(order(7) != order(8));
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
  s.answer_to("a.test", record_type::aaaa, {"2001:db8::1"}, 30);
  s.answer_to("a.test", record_type::a, {"192.0.2.1"}, 30);
  s.answer_to("b.test", record_type::aaaa, {"2001:db8::2"}, 30);
  CHECK(s.sent(30).empty());
  s.answer_to("b.test", record_type::a, {}, 40);
  CHECK(s.sent(40) == names{"AAAA c.test", "A c.test"});
}

TEST_CASE("srv: the first target's IPv6 address is acted on", "[srv][resolution][XMPP-4]") {
  script s;
  s.sent(0);
  s.srv_answer({srv(0, 0, 5222, "a.test")}, 20);
  s.sent(20);
  s.answer_to("a.test", record_type::aaaa, {"2001:db8::1"}, 30);
  CHECK(s.state(30) == "wait until 55");  // the companion's delay
  s.answer_to("a.test", record_type::a, {"192.0.2.1"}, 40);
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
  s.answer_to(later, record_type::aaaa, {"2001:db8::2"}, 30);
  s.answer_to(later, record_type::a, {"192.0.2.2"}, 30);
  CHECK(s.state(30) == "wait until 80");
  CHECK(s.state(79) == "wait until 80");
  SECTION("it passes") { CHECK(s.state(80) == "finished: resolution delay passed"); }
  SECTION("the first target's IPv4 address does not shorten it") {
    s.answer_to(lead, record_type::a, {"192.0.2.1"}, 40);
    CHECK(s.state(40) == "wait until 80");
  }
  SECTION("its IPv6 address does") {
    s.answer_to(lead, record_type::aaaa, {"2001:db8::1"}, 40);
    CHECK(s.state(40) == "wait until 65");
  }
  SECTION("where it has no address the next one counts") {
    s.answer_to(lead, record_type::aaaa, {}, 40);
    s.answer_to(lead, record_type::a, {}, 40);
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
  s.answer_to("b.test", record_type::aaaa, {"2001:db8::b"}, 1);
  s.answer_to("b.test", record_type::a, {"192.0.2.2"}, 1);
  s.answer_to("a.test", record_type::aaaa, {"2001:db8::a"}, 1);
  s.answer_to("a.test", record_type::a, {"192.0.2.1"}, 1);
  s.sent(1);
  s.answer_to("c.test", record_type::a, {"192.0.2.3"}, 2);
  s.answer_to("c.test", record_type::aaaa, {}, 2);
  s.sent(2);
  s.answer_to(domain, record_type::a, {"192.0.2.9"}, 3);
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
    s.answer_to("a.test", record_type::aaaa, {}, 30);
    CHECK(s.state(30) != "finished: all queries answered");
    s.answer_to("a.test", record_type::a, {}, 30);
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
  s.answer_to(domain, record_type::aaaa, {}, 1040);
  s.answer_to(domain, record_type::a, {"192.0.2.9"}, 1040);
  CHECK(s.state(1040) == "finished: all queries answered");
}

// What the next priority and the name wait for at most: srv_targets_patience, from the queries on.
const std::vector<service_record> two_priorities{srv(0, 0, 5222, "a.test"),
                                                 srv(5, 0, 443, "c.test")};

TEST_CASE("srv: a family of the first target that keeps silent holds nothing up",
          "[srv][resolution][XMPP-3][XMPP-4]") {
  script s;
  CHECK(s.asked_after(two_priorities) == names{"AAAA a.test", "A a.test"});
  s.answer_to("a.test", record_type::a, {"192.0.2.1"}, 30);
  CHECK(s.state(30) == "wait until 80");
  CHECK(s.state(80) == "finished: resolution delay passed");
  CHECK(s.machine.asks_more_at() == at(1020));
  CHECK(s.sent(1019).empty());
  CHECK(s.sent(1020) == names{"AAAA c.test", "A c.test"});
  s.answer_to("c.test", record_type::aaaa, {}, 1030);
  s.answer_to("c.test", record_type::a, {"192.0.2.3"}, 1030);
  CHECK(s.sent(1030) == names{"AAAA example.test", "A example.test"});
  CHECK(s.machine.asks_more_at() == never);
  s.answer_to("a.test", record_type::aaaa, {"2001:db8::1"},
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
    s.answer_to("c.test", record_type::aaaa, {"2001:db8::3"}, 1040);
    CHECK(s.state(1040) == "wait until 1065");  // the companion's delay
    s.answer_to("c.test", record_type::a, {"192.0.2.3"}, 1050);
    CHECK(s.state(1050) == "query");
    s.sent(1050);
    CHECK(s.state(1050) == "finished: all queries answered");
  }
  SECTION("what comes late from the better one goes first") {
    s.answer_to("c.test", record_type::a, {"192.0.2.3"}, 1040);
    CHECK(s.state(1040) == "wait until 1090");
    s.answer_to("a.test", record_type::aaaa, {"2001:db8::1"}, 1050);
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
  s.answer_to("b.test", record_type::aaaa, {"2001:db8::2"}, 30);
  s.answer_to("b.test", record_type::a, {}, 30);
  CHECK(s.state(30) == "wait until 80");  // for the first target
  CHECK(s.state(80) == "finished: resolution delay passed");
  CHECK(s.sent(1019).empty());
  CHECK(s.sent(1020) == names{"AAAA c.test", "A c.test"});
  s.answer_to("a.test", record_type::aaaa, {"2001:db8::1"}, 1500);
  CHECK(sorted(s.machine) == names{"2001:db8::1 5222 0", "2001:db8::2 5223 0"});
}

TEST_CASE(
    "srv: where every target keeps silent the name's own addresses count, as without SRV records",
    "[srv][resolution][XMPP-6]") {
  script s;
  s.asked_after(two_priorities);
  s.sent(1020);
  s.answer_to("c.test", record_type::a, {}, 1030);
  CHECK(s.sent(2019).empty());
  CHECK(s.sent(2020) == names{"AAAA example.test", "A example.test"});
  SECTION("they are there") {
    s.answer_to(domain, record_type::aaaa, {"2001:db8::9"}, 2030);
    CHECK(s.state(2030) == "wait until 2055");
    s.answer_to(domain, record_type::a, {"192.0.2.9"}, 2040);
    CHECK(s.state(2040) == "finished: all queries answered");
    CHECK(sorted(s.machine) == names{"2001:db8::9 0 -", "192.0.2.9 0 -"});
  }
  SECTION("there are none: a late answer of a target is all that is left") {
    s.answer_to(domain, record_type::aaaa, {}, 2030);
    s.answer_to(domain, record_type::a, {}, 2030);
    CHECK(s.state(2030) == "wait until 10000");
    CHECK(s.state(10'000) == "finished: nameservers out of time");
    s.answer_to("a.test", record_type::aaaa, {"2001:db8::1"}, 3000);
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

TEST_CASE("srv: a group begins when every attempt of the groups before it has failed",
          "[race][XMPP-2]") {
  // "Only after all connection attempts for all target hosts in the first priority group are exhausted,
  // target hosts for the subsequent priority group are processed."
  CHECK(test::run_race_script(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 || 2001:db8::2 192.0.2.2 || 192.0.2.3
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
    300 < refused 2001:db8::1
   2000 < refused 192.0.2.1
   2000 > connect 2001:db8::2
   2250 > connect 192.0.2.2
   2300 < refused 192.0.2.2
   2400 < refused 2001:db8::2
   2400 > connect 192.0.2.3
   2500 < connected 192.0.2.3
   2500 > won 192.0.2.3
  )") == "");
}

TEST_CASE("srv: a silent group holds the next one back for ten seconds after its last attempt",
          "[race][XMPP-2]") {
  CHECK(test::run_race_script(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 || 2001:db8::2 192.0.2.2
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
  10250 > connect 2001:db8::2
  10500 > connect 192.0.2.2
  10600 < connected 192.0.2.1
  10600 > won 192.0.2.1
  )") == "");
}

TEST_CASE("srv: while the first group is alive the second stays untouched", "[race][XMPP-2]") {
  race_timing timing;
  timing.group_patience = std::chrono::seconds(2);
  CHECK(test::run_race_script(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 || 2001:db8::2
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
   2200 < connected 192.0.2.1
   2200 > won 192.0.2.1
  )",
                              timing) == "");
}

TEST_CASE("srv: a program that gives up in time sees the second group tried before",
          "[race][XMPP-2]") {
  CHECK(test::run_race_script(R"(
      0 < deadline 4000
      0 < endpoints 2001:db8::1 192.0.2.1 || 2001:db8::2
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
   2125 > connect 2001:db8::2
   2200 < connected 2001:db8::2
   2200 > won 2001:db8::2
  )") == "");
}

TEST_CASE("srv: an address that comes late to the first group goes before the second",
          "[race][XMPP-2][CHANGE-1]") {
  CHECK(test::run_race_script(R"(
      0 < endpoints 2001:db8::1 || 192.0.2.2 ...
      0 > connect 2001:db8::1
   1000 < endpoints 2001:db8::1 192.0.2.1 || 192.0.2.2
   1000 > connect 192.0.2.1
   1100 < refused 2001:db8::1
   1200 < refused 192.0.2.1
   1200 > connect 192.0.2.2
   1300 < refused 192.0.2.2
   1300 > lost
  )") == "");
}

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
