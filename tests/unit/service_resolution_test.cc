// Service records in the resolution, on virtual time.

#include "resolver/endpoints.h"
#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/resolution_script.h"

namespace happy {
namespace {

using kind = resolution::action::kind;
using test::at;
using test::ip;

constexpr const char* own = "www.test";

service_record record(std::uint16_t priority, const std::string& target,
                      const std::vector<std::string>& hints = {}, std::uint16_t port = 0) {
  service_record r;
  r.priority = priority;
  r.target = target;
  r.port = port;
  for (const std::string& hint : hints) r.hints.push_back(ip(hint));
  return r;
}

// A resolution that asks for www.test's HTTPS records, and what it is told.
class script : public test::resolution_script {
 public:
  explicit script(resolution::settings s = {}) : resolution_script(with_service(s)) { sent(); }

  void service_answer(const std::string& name, const std::vector<service_record>& found, int now,
                      answer_kind negative = answer_kind::no_data) {
    resolution_script::service_answer(name, record_type::https, found, now, negative);
  }

 private:
  static resolution::settings with_service(resolution::settings s) {
    s.name = own;
    s.service_name = own;
    s.deadline = at(10'000);
    return s;
  }
};

// "ADDRESS PORT PRIORITY", with "hint" behind what is one.
std::vector<std::string> shown(const std::vector<candidate>& list) {
  std::vector<std::string> lines;
  for (const candidate& c : list) {
    lines.push_back(test::text(c.destination) + " " + std::to_string(c.port) + " " +
                    (c.service_priority == no_service_priority ? "-"
                     : c.service_priority == outdated_hint_priority
                         ? "outdated"
                         : std::to_string(c.service_priority)) +
                    (c.hinted ? " hint" : ""));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

using lines = std::vector<std::string>;

}  // namespace

TEST_CASE("service: HTTPS, AAAA, A go out back to back", "[resolution][QUERY-3][QUERY-4]") {
  // "The order in which the queries are sent SHOULD be as follows: SVCB or HTTPS query, AAAA query, A query"
  resolution r({.name = own, .service_name = own});
  for (const record_type type : {record_type::https, record_type::aaaa, record_type::a}) {
    const auto next = r.poll(at(0));
    REQUIRE(next.what == kind::query);
    CHECK(r.type_of(next.query) == type);
    CHECK(r.name_of(next.query) == own);
  }
  CHECK(r.poll(at(0)).what == kind::wait);
}

TEST_CASE("service: a family without connectivity is asked for in need only",
          "[resolution][QUERY-1][QUERY-2]") {
  resolution r({.in_reserve = family::ipv6, .preferred = family::ipv4, .name = own});
  CHECK(r.type_of(r.poll(at(0)).query) == record_type::a);
  CHECK(r.poll(at(0)).what == kind::wait);
  answer a;
  a.type = record_type::a;
  a.kind = answer_kind::no_data;
  r.handle(0, a, at(5));
  const auto next = r.poll(at(5));
  REQUIRE(next.what == kind::query);
  CHECK(r.type_of(next.query) == record_type::aaaa);

  resolution served({.in_reserve = family::ipv6, .preferred = family::ipv4, .name = own});
  served.poll(at(0));
  a.kind = answer_kind::positive;
  a.addresses.push_back(ip("192.0.2.1"));
  served.handle(0, a, at(5));
  CHECK(served.poll(at(5)).what == kind::finished);
}

TEST_CASE("service: its answer is waited for, within the Resolution Delay",
          "[resolution][ANSWER-2][ANSWER-3]") {
  // "SVCB/HTTPS service information has been received (or has received a negative response)"
  script s;
  s.address_answer(own, record_type::aaaa, {"2001:db8::1"}, 10);
  s.address_answer(own, record_type::a, {"192.0.2.1"}, 12);
  CHECK(s.state(12) == "wait until 60");
  CHECK(s.state(60) == "finished: resolution delay passed");
  s.service_answer(own, {}, 61);
  CHECK(s.state(61) == "finished: all queries answered");
}

TEST_CASE("service: a negative answer to it ends the wait, SERVFAIL too",
          "[resolution][ANSWER-2][ANSWER-5]") {
  for (const answer_kind how :
       {answer_kind::no_data, answer_kind::name_error, answer_kind::server_failure,
        answer_kind::odd, answer_kind::not_sent, answer_kind::timed_out}) {
    script s;
    s.address_answer(own, record_type::aaaa, {"2001:db8::1"}, 10);
    s.service_answer(own, {}, 11, how);
    CHECK(s.state(11) == "wait until 35");  // for the companion family
    CHECK(s.state(35) == "finished: preferred family answered");
    CHECK(service_candidates(s.machine, 443, false).empty());
  }
}

TEST_CASE("service: where the preferred family has nothing the service alone is waited for",
          "[resolution][ANSWER-2]") {
  script s;
  s.address_answer(own, record_type::aaaa, {}, 10);
  s.address_answer(own, record_type::a, {"192.0.2.1"}, 12);
  CHECK(s.state(12) == "wait until 62");
  s.service_answer(own, {}, 20);
  CHECK(s.state(20) == "finished: all queries answered");
}

TEST_CASE("service: without any address it cannot help", "[resolution][ANSWER-6]") {
  script s;
  s.address_answer(own, record_type::aaaa, {}, 10, answer_kind::name_error);
  s.address_answer(own, record_type::a, {}, 12, answer_kind::name_error);
  CHECK(s.state(12) == "finished: all queries answered");
  CHECK_FALSE(s.machine.any_positive());
}

TEST_CASE("service: hints are positive answers", "[resolution][ANSWER-4][SVCB-2]") {
  // "IP address hints ... SHOULD be considered as positive non-empty answers"
  script s;
  s.service_answer(own, {record(1, "", {"2001:db8::1", "192.0.2.1"})}, 10);
  CHECK(s.machine.any_positive());
  CHECK(s.state(10) == "wait until 35");
  CHECK(shown(own_candidates(s.machine)) == lines{"192.0.2.1 0 - hint", "2001:db8::1 0 - hint"});
  CHECK(shown(service_candidates(s.machine, 443, false)) ==
        lines{"192.0.2.1 0 1 hint", "2001:db8::1 0 1 hint"});
  CHECK(s.state(35) == "finished: preferred family answered");
}

TEST_CASE("service: hints at other names start the delay but are not handed out",
          "[resolution][ANSWER-4]") {
  script s;
  s.service_answer(own, {record(1, "t.test", {"2001:db8::9"})}, 10);
  CHECK_FALSE(s.machine.any_positive());
  s.address_answer(own, record_type::a, {"192.0.2.1"}, 40);
  CHECK(s.state(40) == "query");
  s.sent(40);
  CHECK(s.state(40) == "wait until 60");
}

TEST_CASE("service: records replace hints", "[resolution][SVCB-2][SVCB-3]") {
  // "When those records are received, they replace the hints"
  script s;
  s.service_answer(own, {record(1, "t.test", {"2001:db8::9", "192.0.2.9", "192.0.2.8"})}, 10);
  CHECK(s.sent(10) == lines{"AAAA t.test", "A t.test"});
  s.address_answer("t.test", record_type::a, {"192.0.2.9", "192.0.2.7"}, 20);
  CHECK(shown(service_candidates(s.machine, 443, false)) ==
        lines{"192.0.2.7 0 1", "192.0.2.9 0 1", "2001:db8::9 0 1 hint"});
  CHECK(
      shown(service_candidates(s.machine, 443, true)) ==
      lines{"192.0.2.7 0 1", "192.0.2.8 0 outdated hint", "192.0.2.9 0 1", "2001:db8::9 0 1 hint"});
  // No address is an answer, an error is none.
  s.address_answer("t.test", record_type::aaaa, {}, 30, answer_kind::server_failure);
  CHECK(shown(service_candidates(s.machine, 443, false)).size() == 3);
  script none;
  none.service_answer(own, {record(1, "t.test", {"2001:db8::9"})}, 10);
  none.sent(10);
  none.address_answer("t.test", record_type::aaaa, {}, 20);
  CHECK(service_candidates(none.machine, 443, false).empty());
}

TEST_CASE("service: aliases are followed, and only then is the service known",
          "[resolution][SVCB-1]") {
  // "does not consider service information to be received until ServiceMode records are available"
  script s;
  s.service_answer(own, {record(0, "a.test"), record(1, "")}, 10);
  CHECK(s.sent(10) == lines{"HTTPS a.test", "AAAA a.test", "A a.test"});
  s.address_answer(own, record_type::aaaa, {"2001:db8::1"}, 11);
  s.address_answer(own, record_type::a, {"192.0.2.1"}, 11);
  CHECK(s.state(11) == "wait until 61");
  s.service_answer("a.test", {record(3, "", {}, 8443)}, 20);
  CHECK(s.state(20) == "finished: all queries answered");
  s.address_answer("a.test", record_type::a, {"192.0.2.9"}, 25);
  CHECK(shown(service_candidates(s.machine, 443, false)) ==
        lines{"192.0.2.1 0 -", "192.0.2.9 8443 3", "2001:db8::1 0 -"});
}

TEST_CASE("service: an alias to a name without service records is an endpoint itself",
          "[resolution][SVCB-1]") {
  script s;
  s.service_answer(own, {record(0, "a.test")}, 10);
  s.sent(10);
  s.service_answer("a.test", {}, 20);
  s.address_answer("a.test", record_type::a, {"192.0.2.9"}, 25);
  CHECK(shown(service_candidates(s.machine, 443, false)) == lines{"192.0.2.9 0 0"});
}

TEST_CASE("service: loops and long chains end", "[resolution][SVCB-1]") {
  script loop;
  loop.service_answer(own, {record(0, "a.test")}, 10);
  loop.sent(10);
  loop.service_answer("a.test", {record(0, "WWW.test")}, 20);
  CHECK(loop.machine.service_settled());
  CHECK(loop.sent(20).empty());

  script chain;
  chain.service_answer(own, {record(0, "n0.test")}, 10);
  for (std::size_t i = 0; i < max_alias_links; ++i) {
    CHECK_FALSE(chain.machine.service_settled());
    chain.service_answer("n" + std::to_string(i) + ".test",
                         {record(0, "n" + std::to_string(i + 1) + ".test")}, 20);
  }
  CHECK(chain.machine.service_settled());
  CHECK(chain.machine.query_count() == 3 * (1 + max_alias_links));

  script nowhere;  // RFC 9460 s2.5.1: "." as an alias's target means that there is no service
  nowhere.service_answer(own, {record(0, "")}, 10);
  CHECK(nowhere.machine.service_settled());
}

TEST_CASE("service: what cannot be used does not count", "[resolution][SVCB-4][SVCB-5]") {
  script s;
  service_record h3_only = record(1, "t.test");
  h3_only.usable = false;
  s.service_answer(own, {h3_only}, 10);
  CHECK(s.sent(10).empty());
  CHECK(s.machine.services().empty());
  CHECK(s.machine.service_settled());
}

TEST_CASE("service: endpoints by priority, each once, the name's own last",
          "[resolution][GROUP-2][GROUP-3][SVCB-4]") {
  script s({.seed = 7});
  s.address_answer(own, record_type::a, {"192.0.2.1"}, 5);
  s.service_answer(
      own,
      {record(2, "t.test", {}, 443), record(1, ""), record(1, "", {}, 8443), record(3, "t.test")},
      10);
  CHECK(s.sent(10) == lines{"AAAA t.test", "A t.test"});
  s.address_answer("t.test", record_type::a, {"192.0.2.9"}, 15);
  CHECK(shown(service_candidates(s.machine, 443, false)) ==
        lines{"192.0.2.1 0 1", "192.0.2.1 8443 1", "192.0.2.9 0 2"});
  CHECK(shown(own_candidates(s.machine)) == lines{"192.0.2.1 0 -"});
}

TEST_CASE("service: equal priorities are shuffled", "[resolution][GROUP-2]") {
  int first = 0;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    script s({.seed = seed * 7919});
    s.service_answer(own, {record(1, "a.test"), record(1, "b.test")}, 10);
    REQUIRE(s.machine.services().size() == 2);
    CHECK(s.machine.services()[0].rank <= s.machine.services()[1].rank);
    if (s.machine.services()[0].record.target == "a.test") ++first;
  }
  CHECK(first > 50);
  CHECK(first < 150);
}

TEST_CASE("service: targets are bounded, the best priorities count", "[resolution][SVCB-2]") {
  script s;
  std::vector<service_record> many;
  for (std::uint16_t i = 8; i > 0; --i)
    many.push_back(record(i, "t" + std::to_string(i) + ".test"));
  s.service_answer(own, many, 10);
  REQUIRE(s.machine.services().size() == max_services);
  CHECK(s.machine.services()[0].record.priority == 1);
  CHECK(s.machine.query_count() == 3 + 2 * max_services);
}

TEST_CASE("service: an IPv4-only lookup takes IPv4 hints and asks for A",
          "[resolution][QUERY-2][ANSWER-4]") {
  script s({.ipv6 = false});
  s.service_answer(own, {record(1, "t.test", {"2001:db8::9", "192.0.2.9"})}, 10);
  CHECK(s.sent(10) == lines{"A t.test"});
  CHECK(shown(service_candidates(s.machine, 443, false)) == lines{"192.0.2.9 0 1 hint"});
  s.address_answer(own, record_type::a, {"192.0.2.1"}, 12);
  CHECK(s.state(12) == "finished: all queries answered");
}

TEST_CASE("service: a lookup does not wait for the addresses of targets",
          "[resolution][ANSWER-1]") {
  script s;
  s.address_answer(own, record_type::aaaa, {"2001:db8::1"}, 5);
  s.address_answer(own, record_type::a, {"192.0.2.1"}, 5);
  s.service_answer(own, {record(1, "t.test")}, 10);
  s.sent(10);
  CHECK(s.state(10) == "finished: all queries answered");
  CHECK_FALSE(s.machine.all_answered());
}

}  // namespace happy
