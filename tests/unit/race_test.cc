// The race on virtual time. Each test quotes the sentence of the specification that it checks.

#include "racer/race.h"

#include <array>
#include <cstdio>

#include "tests/support/catch.h"
#include "tests/support/race_script.h"

using happy::milliseconds;
using happy::race_timing;
using happy::test::run_race_script;

#define CHECK_SCRIPT(...) CHECK(run_race_script(__VA_ARGS__) == "")

TEST_CASE("race: attempts start one at a time, 250 ms apart, and none disturbs another",
          "[race][ATTEMPT-1][ATTEMPT-4]") {
  // "one connection attempt to a single endpoint is started first, followed by the others, one at a time"
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 2001:db8::2
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
    500 > connect 2001:db8::2
    700 < connected 2001:db8::1
    700 > won 2001:db8::1
  )");
}

TEST_CASE("race: the first success ends the race; endpoints not tried are ignored",
          "[race][ATTEMPT-2]") {
  // "Any endpoint that was not yet attempted as a connection SHOULD be ignored."
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 2001:db8::2
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
    270 < connected 192.0.2.1
    270 > won 192.0.2.1
    300 < connected 2001:db8::1
    300 < refused 2001:db8::1
  )");
}

TEST_CASE("race: a healthy first endpoint is the only one attempted",
          "[race][ATTEMPT-2][SUCCESS-1]") {
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1
      0 > connect 2001:db8::1
     20 < connected 2001:db8::1
     20 > won 2001:db8::1
  )");
}

TEST_CASE("race: a refusal starts the next attempt at once", "[race][ATTEMPT-7]") {
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 2001:db8::2 192.0.2.1
      0 > connect 2001:db8::1
     30 < refused 2001:db8::1
     30 > connect 192.0.2.1
    280 > connect 2001:db8::2
    300 < connected 192.0.2.1
    300 > won 192.0.2.1
  )");
}

TEST_CASE("race: never two attempts within 10 ms of each other on the network",
          "[race][ATTEMPT-5]") {
  // "a subsequent connection MUST NOT be started within 10 milliseconds of the previous attempt"
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1
      0 > connect 2001:db8::1
      1 < refused 2001:db8::1
     10 > connect 192.0.2.1
     11 < refused 192.0.2.1
     11 > lost
  )");
}

TEST_CASE("race: an attempt that sent nothing does not hold up the next",
          "[race][ATTEMPT-5][ATTEMPT-7]") {
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 2001:db8::2
      0 > connect 2001:db8::1
      0 < unreachable 2001:db8::1
      0 > connect 192.0.2.1
      1 < refused 192.0.2.1
     10 > connect 2001:db8::2
     10 < unreachable 2001:db8::2
     10 > lost
  )");
}

TEST_CASE("race: the timer restarts with each attempt", "[race][ATTEMPT-6]") {
  // "Whenever this timer fires ... the timer either is reset to a new delay value or ... cancelled"
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 2001:db8::2 192.0.2.2
      0 > connect 2001:db8::1
    100 < refused 2001:db8::1
    100 > connect 192.0.2.1
    350 > connect 2001:db8::2
    600 > connect 192.0.2.2
    900 < connected 192.0.2.2
    900 > won 192.0.2.2
  )");
}

TEST_CASE("race: at the end of the list there is no timer", "[race][ATTEMPT-6]") {
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1
      0 > connect 2001:db8::1
   9000 < refused 2001:db8::1
   9000 > lost
  )");
}

TEST_CASE("race: a soft error starts the next attempt and leaves the old one alive",
          "[race][ATTEMPT-7]") {
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1
      0 > connect 2001:db8::1
     20 < troubled 2001:db8::1
     20 > connect 192.0.2.1
     90 < connected 2001:db8::1
     90 > won 2001:db8::1
  )");
}

TEST_CASE("race: an IPv4 address that arrives after the first IPv6 attempt comes next",
          "[race][CHANGE-1]") {
  // "an IPv4 address endpoint should be placed next in the list of endpoints to attempt"
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 2001:db8::2 ...
      0 > connect 2001:db8::1
    100 < endpoints 2001:db8::1 2001:db8::2 192.0.2.1
    250 > connect 192.0.2.1
    500 > connect 2001:db8::2
    510 < connected 2001:db8::2
    510 > won 2001:db8::2
  )");
}

TEST_CASE("race: an address that comes after the delay is attempted at once",
          "[race][CHANGE-1][ATTEMPT-6]") {
  CHECK_SCRIPT(R"(
      0 < endpoints 192.0.2.1 ...
      0 > connect 192.0.2.1
    400 < endpoints 2001:db8::1 192.0.2.1
    400 > connect 2001:db8::1
    420 < connected 2001:db8::1
    420 > won 2001:db8::1
  )");
}

TEST_CASE("race: a DNS change alone does not move the timer", "[race][CHANGE-1]") {
  // "a DNS update alone does not justify rescheduling the timer"
  CHECK_SCRIPT(R"(
      0 < endpoints 192.0.2.1 ...
      0 > connect 192.0.2.1
     50 < endpoints 2001:db8::1 192.0.2.1
    250 > connect 2001:db8::1
    260 < connected 192.0.2.1
    260 > won 192.0.2.1
  )");
}

TEST_CASE("race: a removed endpoint is dropped unless its attempt has started",
          "[race][CHANGE-2]") {
  // "the connection attempt SHOULD NOT be canceled, but rather be allowed to continue"
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 2001:db8::2
      0 > connect 2001:db8::1
    100 < endpoints 2001:db8::2 192.0.2.2
    250 > connect 192.0.2.2
    300 < connected 2001:db8::1
    300 > won 2001:db8::1
  )");
}

TEST_CASE("race: answers that expire end no attempt, and nothing new starts from them",
          "[race][CHANGE-3]") {
  // "A Happy Eyeballs client will not cancel those ongoing attempts when the answers expire."
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 2001:db8::2 ...
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
    300 < endpoints 2001:db8::1
    400 < refused 2001:db8::1
    900 < connected 192.0.2.1
    900 > won 192.0.2.1
  )");
}

TEST_CASE("race: while answers may still come, failing everything is not the end",
          "[race][CHANGE-1]") {
  CHECK_SCRIPT(R"(
      0 < endpoints 192.0.2.1 ...
      0 > connect 192.0.2.1
     20 < refused 192.0.2.1
   2000 < endpoints 192.0.2.1
   2000 > lost
  )");
}

TEST_CASE("race: no endpoint is attempted twice", "[race][ATTEMPT-1]") {
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1 2001:db8::1
      0 > connect 2001:db8::1
     20 < refused 2001:db8::1
     20 > connect 192.0.2.1
     40 < endpoints 192.0.2.1 2001:db8::1
     60 < refused 192.0.2.1
     60 > lost
  )");
}

TEST_CASE("race: the delay is configurable and stays inside its bounds",
          "[race][CONFIG-1][ATTEMPT-5]") {
  const char* script = R"(
      0 < endpoints 2001:db8::1 192.0.2.1
      0 > connect 2001:db8::1
    %d > connect 192.0.2.1
    3000 < connected 192.0.2.1
    3000 > won 192.0.2.1
  )";
  const auto expect_delay = [&](const race_timing& timing, int ms) {
    std::array<char, 512> text{};
    std::snprintf(text.data(), text.size(), script, ms);
    CHECK_SCRIPT(text.data(), timing);
  };
  expect_delay({.attempt_delay = milliseconds(400)}, 400);
  expect_delay({.attempt_delay = milliseconds(20)}, 100);  // Minimum Connection Attempt Delay
  expect_delay({.attempt_delay = milliseconds(20), .minimum_delay = milliseconds(15)}, 20);
  expect_delay({.attempt_delay = milliseconds(9000)}, 2000);  // Maximum Connection Attempt Delay
  expect_delay({.attempt_delay = milliseconds(1), .minimum_delay = milliseconds(1)}, 10);
}

TEST_CASE("race: with history the delay is about the time of the first retransmission",
          "[race][ATTEMPT-4][ATTEMPT-5][ATTEMPT-6]") {
  // "should correspond to the time when the previous attempt is retrying its handshake"
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1~180 192.0.2.1~30 2001:db8::2~5000 192.0.2.2
      0 > connect 2001:db8::1
    180 > connect 192.0.2.1
    280 > connect 2001:db8::2
   2280 > connect 192.0.2.2
   2300 < connected 2001:db8::2
   2300 > won 2001:db8::2
  )");
  CHECK(race_timing{}.delay(milliseconds(400)) == milliseconds(400));  // as if seen lately
  using happy::expected_handshake;
  // RFC 6298 s2.2: RTO = SRTT + K * RTTVAR, with K = 4 and RTTVAR = R/2 after one measurement
  CHECK(expected_handshake(milliseconds(60), milliseconds(10)) == milliseconds(100));
  CHECK(expected_handshake(milliseconds(60), milliseconds(0)) == milliseconds(180));
  CHECK(expected_handshake(milliseconds(0), milliseconds(0)) == milliseconds(0));
}

TEST_CASE("race: history that is old makes the delay shorter, never longer", "[race][ATTEMPT-4]") {
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1~~900 192.0.2.1~~120 2001:db8::2
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
    370 > connect 2001:db8::2
    400 < connected 2001:db8::2
    400 > won 2001:db8::2
  )");
}

TEST_CASE("race: the fast profile doubles from 50 ms up to the delay, never under 10 ms",
          "[race][ATTEMPT-5]") {
  race_timing fast{.profile = happy::timing_profile::fast};
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1~500 192.0.2.1 2001:db8::2 192.0.2.2 2001:db8::3
      0 > connect 2001:db8::1
     50 > connect 192.0.2.1
    150 > connect 2001:db8::2
    350 > connect 192.0.2.2
    600 > connect 2001:db8::3
    601 < connected 192.0.2.1
    601 > won 192.0.2.1
  )",
               fast);
  fast.attempt_delay = milliseconds(1);
  CHECK(fast.delay() == happy::attempt_floor);
  CHECK(race_timing{.profile = happy::timing_profile::fast}.delay({}, true, 95) ==
        milliseconds(250));
}

TEST_CASE("race: the profile of RFC 8305 has the same delays", "[race][V2-2]") {
  CHECK(race_timing{.profile = happy::timing_profile::v2}.delay() == milliseconds(250));
  CHECK(race_timing{.profile = happy::timing_profile::v2}.preferred_family_count == 1);
}

TEST_CASE("race: where the program gives up sooner, the other family still gets its try",
          "[race][ATTEMPT-4]") {
  CHECK_SCRIPT(R"(
      0 < deadline 200
      0 < endpoints 2001:db8::1 192.0.2.1 2001:db8::2
      0 > connect 2001:db8::1
    100 > connect 192.0.2.1
    150 < connected 192.0.2.1
    150 > won 192.0.2.1
  )");
  // One family only, or time enough: nothing shrinks.
  CHECK_SCRIPT(R"(
      0 < deadline 200
      0 < endpoints 2001:db8::1 2001:db8::2
      0 > connect 2001:db8::1
    250 > connect 2001:db8::2
    260 < connected 2001:db8::2
    260 > won 2001:db8::2
  )");
  CHECK_SCRIPT(R"(
      0 < deadline 3000
      0 < endpoints 2001:db8::1 192.0.2.1
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
    260 < connected 192.0.2.1
    260 > won 192.0.2.1
  )");
}

TEST_CASE("race: new answers fire the timer sooner while what was started keeps silent",
          "[race][CHANGE-4]") {
  // "has not made progress within an expected time window, the client MAY ... fire the timer sooner ...
  // subject to the Minimum Connection Attempt Delay"
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1~40 2001:db8::2 ...
      0 > connect 2001:db8::1
    100 > connect 2001:db8::2
    150 < endpoints 2001:db8::1~40 2001:db8::2 192.0.2.1
    200 > connect 192.0.2.1
    210 < connected 192.0.2.1
    210 > won 192.0.2.1
  )");
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1~40 2001:db8::2 ...
      0 > connect 2001:db8::1
    100 > connect 2001:db8::2
    230 < endpoints 2001:db8::1~40 2001:db8::2 192.0.2.1
    230 > connect 192.0.2.1
    240 < connected 192.0.2.1
    240 > won 192.0.2.1
  )");
}

TEST_CASE("race: new answers alone do not move the timer, nor do old ones in a new order",
          "[race][CHANGE-4]") {
  // What was started is still within its time.
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1~240 2001:db8::2 ...
      0 > connect 2001:db8::1
    230 < endpoints 2001:db8::1~240 2001:db8::2 192.0.2.1
    240 > connect 192.0.2.1
    250 < connected 192.0.2.1
    250 > won 192.0.2.1
  )");
  // It is not, but nothing is new.
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1~40 2001:db8::2 2001:db8::3 ...
      0 > connect 2001:db8::1
    100 > connect 2001:db8::2
    300 < endpoints 2001:db8::1~40 2001:db8::3 2001:db8::2
    350 > connect 2001:db8::3
    360 < connected 2001:db8::3
    360 > won 2001:db8::3
  )");
  // What keeps silent is over.
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1~40 2001:db8::2 ...
      0 > connect 2001:db8::1
     30 < refused 2001:db8::1
     30 > connect 2001:db8::2
    200 < endpoints 2001:db8::1~40 2001:db8::2 192.0.2.1
    280 > connect 192.0.2.1
    290 < connected 192.0.2.1
    290 > won 192.0.2.1
  )");
}

TEST_CASE("race: where a handshake is not yet success, progress extends the timer",
          "[race][SUCCESS-3]") {
  // "the timer SHOULD be extended to a new value that represents an estimated time for the full connection
  // establishment to complete"
  const race_timing seam{.handshake_decides = false};
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1
      0 > connect 2001:db8::1
    200 < connected 2001:db8::1 150
    300 < succeeded 2001:db8::1
    300 > won 2001:db8::1
  )",
               seam);
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1
      0 > connect 2001:db8::1
    200 < connected 2001:db8::1 150
    350 > connect 192.0.2.1
    370 < connected 192.0.2.1 20
    380 < refused 2001:db8::1
    390 < succeeded 192.0.2.1
    390 > won 192.0.2.1
  )",
               seam);
  // Never brought forward.
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 192.0.2.1
      0 > connect 2001:db8::1
     20 < connected 2001:db8::1 30
    250 > connect 192.0.2.1
    260 < succeeded 2001:db8::1
    260 > won 2001:db8::1
  )",
               seam);
}

TEST_CASE("race: a group's endpoints are all started before the next group's", "[race][GROUP-4]") {
  // "Attempts across service groups SHOULD be allowed to continue in parallel"
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 2001:db8::2 192.0.2.1 | 2001:db8::3 192.0.2.3
      0 > connect 2001:db8::1
    250 > connect 192.0.2.1
    500 > connect 2001:db8::2
    750 > connect 2001:db8::3
    760 < connected 192.0.2.1
    760 > won 192.0.2.1
  )");
}

TEST_CASE("race: at most 32 attempts are in flight, and none is ended to make room",
          "[race][ATTEMPT-2]") {
  happy::race machine{race_timing{}};
  happy::endpoint_list many;
  for (std::uint8_t i = 1; i <= 40; ++i)
    many.push_back({.where = {happy::make_ipv4(192, 0, 2, i), 80}});
  machine.set_plan(many, true, {});
  happy::time_point now{};
  std::size_t started = 0;
  for (int step = 0; step < 400; ++step) {
    const auto action = machine.poll(now);
    if (action.what == happy::race_action::kind::attempt) ++started;
    if (action.what == happy::race_action::kind::wait) now += milliseconds(250);
  }
  CHECK(started == happy::max_attempts_in_flight);
  machine.handle({.what = happy::race_event::kind::failed, .where = many[3].where}, now);
  CHECK(machine.poll(now).what == happy::race_action::kind::attempt);
}

TEST_CASE("race: the last resort is asked for two seconds after the last attempt, once",
          "[race][V6ONLY-8]") {
  // "The timer is started when the last connection attempt is fired."
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 2001:db8::2
      0 > connect 2001:db8::1
      0 < last resort
    250 > connect 2001:db8::2
   2250 > ask
   2270 < endpoints 2001:db8::1 2001:db8::2 2001:db8:64::c633:640a
   2270 > connect 2001:db8:64::c633:640a
   2290 < connected 2001:db8:64::c633:640a
   2290 > won 2001:db8:64::c633:640a
  )");
}

TEST_CASE("race: with every attempt failed nothing is waited for before the last resort",
          "[race][V6ONLY-8]") {
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1
      0 > connect 2001:db8::1
      0 < last resort
     30 < refused 2001:db8::1
     30 > ask
     40 < endpoints 2001:db8::1
     40 > lost
  )");
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1
      0 > connect 2001:db8::1
      0 < last resort
    300 < connected 2001:db8::1
    300 > won 2001:db8::1
  )");
}

TEST_CASE("race: the last resort waits for answers that are still to come", "[race][V6ONLY-8]") {
  CHECK_SCRIPT(R"(
      0 < endpoints 2001:db8::1 ...
      0 > connect 2001:db8::1
      0 < last resort
   3000 < endpoints 2001:db8::1
   3000 > ask
   3100 < endpoints 2001:db8::1
  )");
}
