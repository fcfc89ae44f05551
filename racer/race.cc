#include "racer/race.h"

#include <algorithm>

namespace happy {

void race::set_plan(const endpoint_list& planned, bool complete) {
  plan_ = planned;
  complete_ = complete;
}

void race::handle(const race_event& event, time_point now) {
  attempt* a = find(event.where);
  if (finished() || a == nullptr || a->ended) return;
  switch (event.what) {
    case race_event::kind::connected:
      phase_ = phase::won;
      winner_ = event.where;
      return;
    case race_event::kind::failed:
      a->ended = true;
      --in_flight_;
      // ATTEMPT-7: at once; the floor holds only between packets.
      if (!event.reached_network && a == &attempts_.back()) floor_ = time_point::min();
      next_start_ = std::min(next_start_, now);
      return;
    case race_event::kind::troubled: next_start_ = std::min(next_start_, now); return;
  }
}

void race::note_started(const endpoint& where, time_point now) {
  if (finished() || started(where) || !attempts_.push_back({.where = where})) return;
  ++in_flight_;
  next_start_ = now + timing_.delay();
  floor_ = now + attempt_floor;
}

race_action race::poll(time_point now) {
  if (finished()) {
    if (told_) return {};
    told_ = true;
    return {.what = phase_ == phase::won ? race_action::kind::won : race_action::kind::lost,
            .where = winner_};
  }
  const endpoint* next = next_endpoint();
  if (next == nullptr) {
    // ATTEMPT-6: the timer is off at the end of the list. A late endpoint finds next_start_ as if
    // it had been listed all the time.
    if (in_flight_ > 0 || (!complete_ && !attempts_.full())) return {};
    phase_ = phase::lost;
    return poll(now);
  }
  if (in_flight_ >= max_attempts_in_flight) return {};
  const time_point start = std::max(next_start_, floor_);
  if (now < start) return {.what = race_action::kind::wait, .until = start};

  const endpoint where = *next;
  note_started(where, now);
  return {.what = race_action::kind::attempt, .where = where};
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

const endpoint* race::next_endpoint() const {
  if (attempts_.full()) return nullptr;
  const endpoint* e =
      std::find_if(plan_.begin(), plan_.end(), [&](const endpoint& x) { return !started(x); });
  return e == plan_.end() ? nullptr : e;
}

}  // namespace happy
