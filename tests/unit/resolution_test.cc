// The resolution on virtual time.

#include "resolver/resolution.h"

#include "tests/support/catch.h"
#include "tests/support/virtual_time.h"

using happy::answer;
using happy::answer_kind;
using happy::family;
using happy::milliseconds;
using happy::move_on;
using happy::record_type;
using happy::resolution;
using happy::time_point;
using happy::test::at;
using kind = happy::resolution::action::kind;

namespace {

answer positive(record_type type) {
  answer a;
  a.type = type;
  a.kind = answer_kind::positive;
  a.addresses.push_back(type == record_type::a ? happy::make_ipv4(192, 0, 2, 1) : happy::address{});
  return a;
}

answer negative(record_type type, answer_kind how) {
  answer a;
  a.type = type;
  a.kind = how;
  return a;
}

// The answer to the name's own query of that type.
void answer_own(resolution& r, const answer& a, time_point now) {
  r.handle(r.find(r.name(), a.type).value(), a, now);
}

// A dual-stack resolution whose two queries have been sent.
resolution begun(const resolution::settings& s = {.deadline = at(10'000)}) {
  resolution r(s);
  while (r.poll(at(0)).what == kind::query) {
  }
  return r;
}

void check_waits_until(resolution& r, int now, int until) {
  const auto action = r.poll(at(now));
  CHECK(action.what == kind::wait);
  CHECK(action.until == at(until));
}

void check_moves_on(resolution& r, int now, move_on reason) {
  const auto action = r.poll(at(now));
  CHECK(action.what == kind::finished);
  CHECK(action.reason == reason);
}

}  // namespace

TEST_CASE("resolution: AAAA and A go out back to back, AAAA first", "[resolution][QUERY-4]") {
  resolution r({.deadline = at(10'000)});
  auto first = r.poll(at(0));
  CHECK(first.what == kind::query);
  CHECK(r.type_of(first.query) == record_type::aaaa);
  auto second = r.poll(at(0));
  CHECK(second.what == kind::query);
  CHECK(r.type_of(second.query) == record_type::a);
  check_waits_until(r, 0, 10'000);
}

TEST_CASE("resolution: addresses that only stand in for others are given up when those come",
          "[resolution]") {
  const resolution::settings s{.ipv4_is_substitute = true, .deadline = at(10'000)};
  {
    resolution r = begun(s);
    answer_own(r, positive(record_type::aaaa), at(20));
    CHECK(!r.counts(family::ipv4));
    check_moves_on(r, 20, move_on::all_answered);
    CHECK(r.all_answered());  // nobody listens for A any more
  }
  {
    resolution r = begun(s);
    answer_own(r, positive(record_type::a), at(20));
    check_waits_until(r, 20, 70);
    CHECK(r.counts(family::ipv4));
    check_moves_on(r, 70, move_on::resolution_delay);
    answer_own(r, positive(record_type::aaaa), at(90));
    CHECK(!r.counts(family::ipv4));
  }
  resolution r = begun(s);
  answer_own(r, negative(record_type::aaaa, answer_kind::no_data), at(20));
  answer_own(r, positive(record_type::a), at(30));
  CHECK(r.counts(family::ipv4));
  check_moves_on(r, 30, move_on::all_answered);
}

TEST_CASE("resolution: only the families asked for are queried", "[resolution][QUERY-2]") {
  resolution r({.ipv4 = true, .ipv6 = false, .deadline = at(10'000)});
  CHECK(r.type_of(r.poll(at(0)).query) == record_type::a);
  CHECK(r.poll(at(0)).what == kind::wait);
  answer_own(r, positive(record_type::a), at(5));
  check_moves_on(r, 5, move_on::all_answered);
}

TEST_CASE("resolution: goes on when the preferred family has answered",
          "[resolution][ANSWER-1][ANSWER-2]") {
  // "Some positive (non-empty) address answers have been received AND a positive (non-empty) or negative
  // (empty) answer has been received for the preferred address family"
  resolution r = begun({.companion_delay = milliseconds(0), .deadline = at(10'000)});
  answer_own(r, positive(record_type::aaaa), at(20));
  check_moves_on(r, 20, move_on::preferred_answered);
}

TEST_CASE("resolution: the other family's answer is waited for a moment",
          "[resolution][ANSWER-2]") {
  resolution r = begun();
  answer_own(r, positive(record_type::aaaa), at(20));
  check_waits_until(r, 20, 45);
  check_moves_on(r, 45, move_on::preferred_answered);

  resolution together = begun();
  answer_own(together, positive(record_type::aaaa), at(20));
  answer_own(together, positive(record_type::a), at(21));
  check_moves_on(together, 21, move_on::all_answered);
}

TEST_CASE("resolution: both waits together do not exceed the Resolution Delay",
          "[resolution][ANSWER-3]") {
  resolution r = begun();
  answer_own(r, positive(record_type::a), at(10));
  check_waits_until(r, 10, 60);
  answer_own(r, negative(record_type::aaaa, answer_kind::no_data), at(59));
  check_moves_on(r, 59, move_on::all_answered);

  resolution quick = begun({.delay = milliseconds(5), .deadline = at(10'000)});
  answer_own(quick, positive(record_type::aaaa), at(10));
  check_waits_until(quick, 10, 15);
  check_moves_on(quick, 15, move_on::preferred_answered);
}

TEST_CASE("resolution: a negative answer of the preferred family ends the wait",
          "[resolution][ANSWER-2][ANSWER-5]") {
  for (const answer_kind how : {answer_kind::no_data, answer_kind::name_error,
                                answer_kind::server_failure, answer_kind::timed_out}) {
    resolution r = begun();
    answer_own(r, positive(record_type::a), at(10));
    check_waits_until(r, 10, 60);
    answer_own(r, negative(record_type::aaaa, how), at(12));
    check_moves_on(r, 12, move_on::all_answered);
  }
}

TEST_CASE("resolution: a lost AAAA answer costs the Resolution Delay",
          "[resolution][ANSWER-3][CONFIG-1]") {
  // "A resolution time delay has passed after which other answers have not been received"
  resolution r = begun();
  answer_own(r, positive(record_type::a), at(10));
  check_waits_until(r, 59, 60);
  check_moves_on(r, 60, move_on::resolution_delay);
  CHECK_FALSE(r.all_answered());

  resolution longer = begun({.delay = milliseconds(200), .deadline = at(10'000)});
  answer_own(longer, positive(record_type::a), at(10));
  check_waits_until(longer, 60, 210);
}

TEST_CASE("resolution: AAAA inside the Resolution Delay is waited for", "[resolution][ANSWER-3]") {
  resolution r = begun();
  answer_own(r, positive(record_type::a), at(10));
  answer_own(r, positive(record_type::aaaa), at(40));
  check_moves_on(r, 40, move_on::all_answered);
}

TEST_CASE("resolution: without any address a negative answer does not end the wait",
          "[resolution][ANSWER-2]") {
  resolution r = begun();
  answer_own(r, negative(record_type::aaaa, answer_kind::no_data), at(10));
  check_waits_until(r, 10, 10'000);
  answer_own(r, positive(record_type::a), at(2000));
  check_moves_on(r, 2000, move_on::all_answered);
}

TEST_CASE("resolution: all answers negative is the end, without addresses",
          "[resolution][ANSWER-6]") {
  resolution r = begun();
  answer_own(r, negative(record_type::a, answer_kind::name_error), at(10));
  answer_own(r, negative(record_type::aaaa, answer_kind::name_error), at(11));
  check_moves_on(r, 11, move_on::all_answered);
  CHECK_FALSE(r.any_positive());
}

TEST_CASE("resolution: ends at its deadline", "[resolution][ANSWER-6]") {
  resolution r = begun();
  check_waits_until(r, 9'999, 10'000);
  check_moves_on(r, 10'000, move_on::deadline);
}

TEST_CASE("resolution: where only IPv4 has a route, A ends the wait", "[resolution][ANSWER-7]") {
  resolution r = begun({.preferred = family::ipv4, .deadline = at(10'000)});
  answer_own(r, positive(record_type::a), at(10));
  check_moves_on(r, 35, move_on::preferred_answered);
}

TEST_CASE("resolution: complete results wait for every answer", "[resolution][ANSWER-3]") {
  resolution r = begun({.complete = true, .deadline = at(10'000)});
  answer_own(r, positive(record_type::aaaa), at(10));
  check_waits_until(r, 5000, 10'000);
  answer_own(r, positive(record_type::a), at(5001));
  check_moves_on(r, 5001, move_on::all_answered);
}

TEST_CASE("resolution: late answers are kept, a second answer to a query is not",
          "[resolution][ANSWER-1]") {
  resolution r = begun();
  answer_own(r, positive(record_type::a), at(10));
  check_moves_on(r, 60, move_on::resolution_delay);
  CHECK(r.answered(record_type::aaaa) == nullptr);
  answer_own(r, positive(record_type::aaaa), at(400));
  answer_own(r, negative(record_type::aaaa, answer_kind::name_error), at(410));
  REQUIRE(r.answered(record_type::aaaa) != nullptr);
  CHECK(r.answered(record_type::aaaa)->kind == answer_kind::positive);
  CHECK(r.all_answered());
}

TEST_CASE("resolution: as RFC 8305 has it, a positive AAAA is acted on at once and an A waits",
          "[resolution][V2-1]") {
  // RFC 8305 s3: "the first IPv6 connection attempt is immediately started", and of a positive A: "the client
  // SHOULD wait a short time for the AAAA response"
  const resolution::settings v2{.companion_delay = happy::duration(0), .deadline = at(10'000)};
  resolution six = begun(v2);
  answer_own(six, positive(record_type::aaaa), at(20));
  check_moves_on(six, 20, move_on::preferred_answered);
  resolution four = begun(v2);
  answer_own(four, positive(record_type::a), at(20));
  check_waits_until(four, 20, 70);
  check_moves_on(four, 70, move_on::resolution_delay);
}
