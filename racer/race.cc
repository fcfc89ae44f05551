#include "racer/race.h"

#include <algorithm>

namespace happy {

const char* to_text(attempt_reason reason) {
  switch (reason) {
    case attempt_reason::first: return "it is the first";
    case attempt_reason::delay_passed: return "the attempt delay has passed";
    case attempt_reason::failure: return "an attempt before it has failed";
    case attempt_reason::group_failed: return "the groups before it have failed";
    case attempt_reason::group_silent: return "the groups before it keep silent";
  }
  return "?";
}

void race::set_plan(const endpoint_list& planned, bool complete, time_point now) {
  complete_ = complete;
  if (std::equal(planned.begin(), planned.end(), plan_.begin(), plan_.end())) return;
  const bool more = !plan_.empty() && brings_more(planned);
  plan_ = planned;
  cursor_ = 0;
  // CHANGE-4: new endpoints alone do not move the timer; new endpoints while the old ones keep silent do.
  if (more && is_overdue(now))
    next_start_ = std::min(next_start_, std::max(now, last_start_ + timing_.minimum_delay));
}

void race::handle(const race_event& event, time_point now) {
  attempt* a = find(event.where);
  if (finished() || a == nullptr || a->ended) return;
  switch (event.what) {
    case race_event::kind::connected:
      if (timing_.handshake_decides) return win(event.where);
      // SUCCESS-3: progress, which is given the time that the rest should take.
      a->expected_by = now + event.until_success;
      next_start_ = std::max(next_start_, a->expected_by);
      return;
    case race_event::kind::succeeded: return win(event.where);
    case race_event::kind::failed:
      a->ended = true;
      --in_flight_;
      // ATTEMPT-7: at once; the floor holds only between packets.
      if (!event.reached_network && a == &attempts_.back()) floor_ = time_point::min();
      next_start_ = std::min(next_start_, now);
      hastened_ = true;
      return;
    case race_event::kind::troubled:
      next_start_ = std::min(next_start_, now);
      hastened_ = true;
      return;
  }
}

void race::win(const endpoint& where) {
  phase_ = phase::won;
  winner_ = where;
}

void race::note_started(const endpoint& where, time_point now) {
  if (finished() || started(where)) return;
  const listed_endpoint* known = listed(where);
  const listed_endpoint e = known != nullptr ? *known : listed_endpoint{.where = where};
  const duration delay = delay_after(e, now);
  const bool has_history = e.expected_handshake > duration(0);
  if (!attempts_.push_back({.where = where,
                            .started = now,
                            .expected_by = has_history ? now + e.expected_handshake : never})) {
    return;
  }
  ++in_flight_;
  last_start_ = now;
  hastened_ = false;
  next_start_ = now + delay;
  floor_ = now + attempt_floor;
}

race_action race::poll(time_point now) {
  if (finished()) {
    if (told_) return {};
    told_ = true;
    return {.what = phase_ == phase::won ? race_action::kind::won : race_action::kind::lost,
            .where = winner_};
  }
  const listed_endpoint* next = next_endpoint();
  if (next == nullptr) {
    // ATTEMPT-6: the timer is off at the end of the list. A late endpoint finds next_start_ as if
    // it had been listed all the time.
    if (complete_ && last_resort_ && !last_resort_said_ && !attempts_.full()) {
      const time_point due = in_flight_ > 0 ? last_start_ + timing_.last_resort_delay : now;
      if (now < due) return {.what = race_action::kind::wait, .until = due};
      last_resort_said_ = true;
      return {.what = race_action::kind::last_resort};
    }
    if (in_flight_ > 0 || (!complete_ && !attempts_.full())) return {};
    phase_ = phase::lost;
    return poll(now);
  }
  if (in_flight_ >= max_attempts_in_flight) return {};
  const time_point start = start_of(*next);
  if (now < start) return {.what = race_action::kind::wait, .until = start};

  const race_action action{.what = race_action::kind::attempt,
                           .where = next->where,
                           .why = reason_for(*next),
                           .in_turn = next->in_turn || plan_.back().in_turn,
                           .group = next->group};
  note_started(action.where, now);
  return action;
}

const endpoint* race::due(time_point now) {
  const listed_endpoint* next = finished() ? nullptr : next_endpoint();
  if (next == nullptr || in_flight_ >= max_attempts_in_flight || now < start_of(*next))
    return nullptr;
  return &next->where;
}

time_point race::start_of(const listed_endpoint& next) const {
  return std::max(next_start(), turn_of(next));
}

// When the groups before `next`'s own are exhausted: every attempt has failed (in the past then), or the last
// one was given the patience of a group, of which half of what is left before the program gives up is the most.
time_point race::turn_of(const listed_endpoint& next) const {
  time_point turn = time_point::min();
  if (!next.in_turn) return turn;
  bool alive = false;
  for (const attempt& a : attempts_) {
    const listed_endpoint* e = listed(a.where);
    if (e != nullptr && e->group >= next.group) continue;
    alive = alive || !a.ended;
    const duration left = deadline_ == never ? timing_.group_patience : (deadline_ - a.started) / 2;
    turn = std::max(turn, a.started + std::min(timing_.group_patience, left));
  }
  return alive ? turn : time_point::min();
}

attempt_reason race::reason_for(const listed_endpoint& next) const {
  if (attempts_.empty()) return attempt_reason::first;
  const auto is_of_group = [&](const attempt& a) {
    const listed_endpoint* e = listed(a.where);
    return e != nullptr && e->group == next.group;
  };
  if (next.in_turn && std::none_of(attempts_.begin(), attempts_.end(), is_of_group))
    return in_flight_ > 0 ? attempt_reason::group_silent : attempt_reason::group_failed;
  return hastened_ ? attempt_reason::failure : attempt_reason::delay_passed;
}

// Half of what is left before the program gives up, where the other family still has to come.
duration race::delay_after(const listed_endpoint& e, time_point now) const {
  const duration delay = timing_.delay(e.expected_handshake, e.answered_lately, attempts_.size());
  if (deadline_ == never || !family_is_untried(e.where)) return delay;
  return std::max(std::min(delay, (deadline_ - now) / 2), attempt_floor);
}

// Whether an endpoint of the family other than `starting`'s is listed and none of it was attempted.
bool race::family_is_untried(const endpoint& starting) const {
  const family wanted = other(starting.address.family);
  const auto is_wanted = [&](const auto& x) { return x.where.address.family == wanted; };
  return std::any_of(plan_.begin(), plan_.end(), is_wanted) &&
         std::none_of(attempts_.begin(), attempts_.end(), is_wanted);
}

bool race::started(const endpoint& where) const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [&](const attempt& a) { return a.where == where; });
}

race::attempt* race::find(const endpoint& where) {
  attempt* a = std::find_if(attempts_.begin(), attempts_.end(),
                            [&](const attempt& x) { return x.where == where; });
  return a == attempts_.end() ? nullptr : a;
}

const listed_endpoint* race::listed(const endpoint& where) const {
  const listed_endpoint* e = std::find_if(
      plan_.begin(), plan_.end(), [&](const listed_endpoint& x) { return x.where == where; });
  return e == plan_.end() ? nullptr : e;
}

const listed_endpoint* race::next_endpoint() {
  if (attempts_.full()) return nullptr;
  while (cursor_ < plan_.size() && started(plan_[cursor_].where)) ++cursor_;
  return cursor_ < plan_.size() ? &plan_[cursor_] : nullptr;
}

// Whether `planned` has an endpoint that was neither listed nor attempted so far.
bool race::brings_more(const endpoint_list& planned) const {
  return std::any_of(planned.begin(), planned.end(), [&](const listed_endpoint& e) {
    return listed(e.where) == nullptr && !started(e.where);
  });
}

bool race::is_overdue(time_point now) const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [&](const attempt& a) { return !a.ended && now >= a.expected_by; });
}

}  // namespace happy
