// How fast attempts at one address start, on virtual time.

#include "racer/pace.h"

#include <algorithm>
#include <vector>

#include "racer/race.h"
#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/virtual_time.h"

namespace happy {
namespace {

using test::at;
using test::ip;

}  // namespace

TEST_CASE("pace: an address has its share of an interval, others have theirs", "[pace]") {
  pace starts;
  const address one = ip("192.0.2.1");
  for (std::size_t i = 0; i < max_starts_per_interval; ++i) {
    CHECK(starts.next_start(one, at(3)) == at(3));
    starts.note_start(one, at(3));
  }
  CHECK(starts.next_start(one, at(3)) == at(13));
  CHECK(starts.next_start(one, at(12)) == at(13));
  CHECK(starts.next_start(one, at(13)) == at(13));
  CHECK(starts.next_start(one, at(40)) == at(40));
  CHECK(starts.next_start(ip("192.0.2.2"), at(3)) == at(3));
  CHECK(starts.next_start(ip("2001:db8::1"), at(3)) == at(3));
  starts.note_start(one, at(40));
  CHECK(starts.next_start(one, at(41)) == at(41));
}

TEST_CASE("pace: of more addresses than are counted the one counted longest ago begins anew",
          "[pace]") {
  pace starts;
  const auto numbered = [](std::size_t i) {
    return make_ipv4(192, 0, 2, static_cast<std::uint8_t>(i));
  };
  const auto fill = [&](std::size_t i, int ms) {
    for (std::size_t k = 0; k < max_starts_per_interval; ++k)
      starts.note_start(numbered(i), at(ms));
  };
  for (std::size_t i = 0; i < max_paced_addresses; ++i) fill(i, static_cast<int>(i) / 4);
  CHECK(starts.next_start(numbered(0), at(4)) == at(10));
  fill(200, 4);
  CHECK(starts.next_start(numbered(200), at(4)) == at(14));
  CHECK(starts.next_start(numbered(0), at(4)) == at(4));
  CHECK(starts.next_start(numbered(max_paced_addresses - 1), at(4)) == at(13));
}

TEST_CASE("pace: a thousand races that are due together start within 80 ms, 128 in 10 ms",
          "[pace][ATTEMPT-5]") {
  constexpr std::size_t crowd = 1000;
  const endpoint silent{ip("2001:db8::1"), 80};
  const endpoint answering{ip("192.0.2.1"), 80};
  endpoint_list list;
  for (const endpoint& where : {silent, answering}) list.push_back({.where = where});
  std::vector<race> races(crowd, race{race_timing{}});
  for (race& r : races) {
    r.set_plan(list, true, at(0));
    CHECK(*r.due(at(0)) == silent);
    r.note_started(silent, at(0));
  }
  pace starts;
  std::vector<int> started;
  for (int ms = 0; started.size() < crowd && ms < 1000; ++ms) {
    for (race& r : races) {
      const endpoint* due = r.due(at(ms));
      if (due == nullptr || starts.next_start(due->address, at(ms)) > at(ms)) continue;
      const race_action next = r.poll(at(ms));
      REQUIRE(next.what == race_action::kind::attempt);
      starts.note_start(next.where.address, at(ms));
      started.push_back(ms);
    }
  }
  REQUIRE(started.size() == crowd);
  CHECK(started.front() == 250);
  CHECK(started.back() == 250 + 70);
  for (int from = 250; from < 340; from += 10) {
    CHECK(std::count_if(started.begin(), started.end(), [&](int ms) {
            return ms >= from && ms < from + 10;
          }) <= static_cast<int>(max_starts_per_interval));
  }
}

TEST_CASE("race: what is due is what is attempted next", "[race]") {
  const endpoint one{ip("2001:db8::1"), 80};
  const endpoint two{ip("192.0.2.1"), 80};
  race machine{race_timing{}};
  CHECK(machine.due(at(0)) == nullptr);
  endpoint_list list;
  list.push_back({.where = one});
  list.push_back({.where = two, .group = 1, .in_turn = true});
  machine.set_plan(list, true, at(0));
  CHECK(*machine.due(at(0)) == one);
  machine.note_started(one, at(0));
  CHECK(machine.due(at(249)) == nullptr);
  CHECK(machine.due(at(250)) == nullptr);  // its group's turn has not come
  CHECK(*machine.due(at(10'000)) == two);
  machine.note_started(two, at(10'000));
  CHECK(machine.due(at(20'000)) == nullptr);
  machine.handle({.what = race_event::kind::connected, .where = one}, at(20'000));
  CHECK(machine.due(at(30'000)) == nullptr);
}

TEST_CASE("race: nothing is due while as many attempts are in flight as may be", "[race]") {
  race machine{race_timing{}};
  endpoint_list list;
  for (std::size_t i = 0; i <= max_attempts_in_flight; ++i)
    list.push_back({.where = {make_ipv4(192, 0, 2, static_cast<std::uint8_t>(i + 1)), 80}});
  machine.set_plan(list, true, at(0));
  for (std::size_t i = 0; i < max_attempts_in_flight; ++i) {
    const int ms = 250 * static_cast<int>(i);
    CHECK(*machine.due(at(ms)) == list[i].where);
    machine.note_started(list[i].where, at(ms));
  }
  CHECK(machine.due(at(60'000)) == nullptr);
  machine.handle({.what = race_event::kind::failed, .where = list[0].where}, at(60'000));
  CHECK(*machine.due(at(60'000)) == list[max_attempts_in_flight].where);
}

}  // namespace happy
