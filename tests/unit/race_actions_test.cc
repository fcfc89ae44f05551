// What the race says of its attempts, and what it does at its limits.

#include "racer/race.h"
#include "tests/support/catch.h"
#include "tests/support/race_script.h"
#include "tests/support/virtual_time.h"

namespace happy {
namespace {

using test::at;
using test::parse_endpoint;
using action_kind = race_action::kind;
using event_kind = race_event::kind;

endpoint numbered(int i) { return {make_ipv4(192, 0, 2, static_cast<std::uint8_t>(i)), 80}; }

listed_endpoint in_group(int i, std::uint32_t group, bool in_turn) {
  return {.where = numbered(i), .group = group, .in_turn = in_turn};
}

// The next attempt, which has to be due.
race_action attempt_at(race& machine, int ms) {
  const race_action action = machine.poll(at(ms));
  CHECK(action.what == action_kind::attempt);
  return action;
}

void fail(race& machine, int i, int ms) {
  machine.handle({.what = event_kind::failed, .where = numbered(i)}, at(ms));
}

}  // namespace

TEST_CASE("race: every attempt says why it is started", "[race][ATTEMPT-7]") {
  race machine{race_timing{}};
  endpoint_list list;
  for (int i = 1; i <= 6; ++i) list.push_back(in_group(i, 0, false));
  machine.set_plan(list, true, at(0));
  CHECK(attempt_at(machine, 0).why == attempt_reason::first);
  CHECK(attempt_at(machine, 250).why == attempt_reason::delay_passed);
  fail(machine, 1, 300);
  CHECK(attempt_at(machine, 300).why == attempt_reason::failure);
  CHECK(attempt_at(machine, 550).why == attempt_reason::delay_passed);
  machine.handle({.what = event_kind::troubled, .where = numbered(4)}, at(600));
  CHECK(attempt_at(machine, 600).why == attempt_reason::failure);
  const race_action last = attempt_at(machine, 850);
  CHECK(last.why == attempt_reason::delay_passed);
  CHECK_FALSE(last.in_turn);
}

TEST_CASE("race: an attempt of a later priority says whether those before it failed or keep silent",
          "[race][XMPP-2]") {
  race machine{race_timing{}};
  endpoint_list list;
  for (const auto& [i, group] : {std::pair(1, 0u), {2, 1u}, {3, 1u}, {4, 2u}})
    list.push_back(in_group(i, group, true));
  machine.set_plan(list, true, at(0));
  const race_action first = attempt_at(machine, 0);
  CHECK(first.why == attempt_reason::first);
  CHECK(first.in_turn);
  fail(machine, 1, 100);
  const race_action second = attempt_at(machine, 100);
  CHECK(second.why == attempt_reason::group_failed);
  CHECK(second.group == 1);
  CHECK(attempt_at(machine, 350).why == attempt_reason::delay_passed);
  fail(machine, 2, 400);
  const race_action third = attempt_at(machine, 10'350);
  CHECK(third.why == attempt_reason::group_silent);
  CHECK(third.group == 2);
}

TEST_CASE("race: an attempt whose endpoint has left the list is of no group", "[race][CHANGE-2]") {
  race machine{race_timing{}};
  endpoint_list list;
  list.push_back(in_group(1, 0, true));
  list.push_back(in_group(2, 1, true));
  machine.set_plan(list, true, at(0));
  attempt_at(machine, 0);
  endpoint_list later;
  later.push_back(in_group(2, 0, true));
  machine.set_plan(later, true, at(100));
  fail(machine, 1, 200);
  const race_action next = attempt_at(machine, 200);
  CHECK(next.why == attempt_reason::group_failed);
  CHECK(next.group == 0);
}

TEST_CASE("race: where only the last of the list waits for its turn, all attempts tell their group",
          "[race][XMPP-2]") {
  race machine{race_timing{}};
  endpoint_list list;
  list.push_back(in_group(1, 0, false));
  list.push_back(in_group(2, 1, true));
  machine.set_plan(list, true, at(0));
  CHECK(attempt_at(machine, 0).in_turn);
}

TEST_CASE("race: the program's own attempt counts once, and not after the end",
          "[race][ATTEMPT-1]") {
  race machine{race_timing{}};
  endpoint_list list;
  for (int i = 1; i <= 2; ++i) list.push_back(in_group(i, 0, false));
  machine.set_plan(list, true, at(0));
  machine.note_started(numbered(1), at(0));
  machine.note_started(numbered(1), at(100));
  CHECK(machine.in_flight() == 1);
  CHECK(machine.next_start() == at(250));
  machine.handle({.what = event_kind::connected, .where = numbered(1)}, at(120));
  machine.note_started(numbered(2), at(130));
  CHECK(machine.in_flight() == 1);
}

TEST_CASE("race: after as many attempts as a list can have there is no further one",
          "[race][ATTEMPT-1]") {
  race machine{race_timing{}};
  endpoint_list list;
  const int most = static_cast<int>(max_candidates);
  for (int i = 1; i <= most; ++i) list.push_back(in_group(i, 0, false));
  machine.set_plan(list, true, at(0));
  for (int i = 1; i <= most; ++i) {
    attempt_at(machine, 1000 * i);
    fail(machine, i, 1000 * i + 1);
  }
  endpoint_list more;
  more.push_back(in_group(most + 1, 0, false));
  machine.set_plan(more, true, at(1000 * (most + 1)));
  CHECK(machine.poll(at(1000 * (most + 1))).what == action_kind::lost);
}

TEST_CASE("race: an answer is overdue from the moment at which it was expected",
          "[race][CHANGE-4]") {
  CHECK(test::run_race_script(R"(
      0 < endpoints 2001:db8::1~~300 2001:db8::2 ...
      0 > connect 2001:db8::1
    250 > connect 2001:db8::2
    300 < endpoints 2001:db8::1~~300 2001:db8::2 192.0.2.1
    350 > connect 192.0.2.1
    360 < connected 192.0.2.1
    360 > won 192.0.2.1
  )") == "");
}

}  // namespace happy
