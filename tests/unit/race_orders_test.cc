// Every order of up to six events for up to four endpoints, and what must hold in each.

#include <algorithm>
#include <vector>

#include "racer/race.h"
#include "tests/support/catch.h"
#include "tests/support/race_script.h"

namespace happy {
namespace {

constexpr int most_events = 6;
constexpr std::size_t most_endpoints = 4;

const endpoint& endpoint_of(std::size_t i) {
  static const endpoint all[most_endpoints] = {
      test::parse_endpoint("2001:db8::1"), test::parse_endpoint("192.0.2.1"),
      test::parse_endpoint("2001:db8::2"), test::parse_endpoint("192.0.2.2")};
  return all[i];
}

// One order, as far as it has got. A value: each next event starts from a copy.
struct state {
  race machine{race_timing{}};
  time_point now{};
  std::size_t listed = 0;
  time_point started_at[most_endpoints] = {never, never, never, never};
  bool ended[most_endpoints] = {};
  bool connected[most_endpoints] = {};
  bool decided = false;
  bool answers_due = false;  // all but the first endpoint are still to come
};

struct tally {
  std::uint64_t orders = 0;
  const char* violation = nullptr;
};

void require(tally& t, bool holds, const char* what) {
  if (!holds && t.violation == nullptr) t.violation = what;
}

std::size_t index_of(const endpoint& where) {
  std::size_t i = 0;
  while (endpoint_of(i) != where) ++i;
  return i;
}

void drain(state& s, tally& t) {
  for (;;) {
    const race_action action = s.machine.poll(s.now);
    if (action.what == race_action::kind::wait) {
      require(t, action.until > s.now, "waits for the past");
      return;
    }
    require(t, !s.decided, "something after the end");
    if (t.violation != nullptr) return;
    if (action.what == race_action::kind::attempt) {
      const std::size_t i = index_of(action.where);
      require(t, s.started_at[i] == never, "attempted twice");
      for (std::size_t k = 0; k < most_endpoints; ++k) {
        require(t, s.started_at[k] == never || s.now - s.started_at[k] >= attempt_floor,
                "under the floor");
        require(t, k >= i || s.started_at[k] != never, "out of order");
      }
      s.started_at[i] = s.now;
    } else {
      s.decided = true;
      for (std::size_t k = 0; k < s.listed; ++k) {
        const bool lost = action.what == race_action::kind::lost;
        require(t, !lost || (s.started_at[k] != never && s.ended[k] && !s.connected[k]),
                "lost too early");
      }
      if (action.what == race_action::kind::won)
        require(t, s.connected[index_of(action.where)], "won by another");
    }
  }
}

void list(state& s, std::size_t count, bool complete) {
  endpoint_list planned;
  for (std::size_t i = 0; i < count; ++i) planned.push_back({.where = endpoint_of(i)});
  s.listed = count;
  s.machine.set_plan(planned, complete, s.now);
}

void tell(state& s, std::size_t i, race_event::kind what) {
  const bool alive = s.started_at[i] != never && !s.ended[i];
  if (alive && !s.decided) {
    s.ended[i] = what != race_event::kind::troubled;
    s.connected[i] = what == race_event::kind::connected;
  }
  s.machine.handle({.what = what, .where = endpoint_of(i)}, s.now);
}

// Whatever is left fails, in time: then there has been a decision.
void finish(state s, std::size_t endpoints, tally& t) {
  if (s.answers_due) list(s, endpoints, true);
  for (int turn = 0; turn < 20 && !s.decided; ++turn) {
    for (std::size_t i = 0; i < s.listed; ++i) tell(s, i, race_event::kind::failed);
    drain(s, t);
    s.now += milliseconds(250);
    drain(s, t);
  }
  require(t, s.decided, "no decision");
}

void go_on(const state& from, std::size_t endpoints, int events_left, tally& t) {
  if (t.violation != nullptr) return;
  ++t.orders;
  finish(from, endpoints, t);
  if (events_left == 0) return;
  const auto with = [&](auto&& change) {
    state next = from;
    change(next);
    drain(next, t);
    go_on(next, endpoints, events_left - 1, t);
  };
  using kind = race_event::kind;
  for (std::size_t i = 0; i < endpoints; ++i) {
    // What is not under way changes nothing: once, for the last event, is enough.
    const bool alive = from.started_at[i] != never && !from.ended[i] && !from.decided;
    if (!alive && events_left > 1) continue;
    for (const kind what : {kind::failed, kind::connected, kind::troubled}) {
      with([&](state& s) { tell(s, i, what); });
    }
  }
  if (from.answers_due) {
    with([&](state& s) {
      s.answers_due = false;
      list(s, endpoints, true);
    });
  }
  with([](state& s) { s.now += milliseconds(10); });
  with([](state& s) { s.now += milliseconds(250); });
}

}  // namespace

TEST_CASE("race: in every order of up to six events there is one decision and nothing after it",
          "[race][ATTEMPT-1][ATTEMPT-2][ATTEMPT-5][CHANGE-1]") {
  tally t;
  for (std::size_t endpoints = 1; endpoints <= most_endpoints; ++endpoints) {
    for (const bool answers_due : {false, true}) {
      state begin;
      begin.answers_due = answers_due;
      list(begin, answers_due ? 1 : endpoints, !answers_due);
      drain(begin, t);
      go_on(begin, endpoints, most_events, t);
    }
  }
  INFO((t.violation != nullptr ? t.violation : ""));
  CHECK(t.violation == nullptr);
  CHECK(t.orders > 100'000);
}

}  // namespace happy
