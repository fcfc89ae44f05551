#include "resolver/nameserver_turns.h"

#include <algorithm>

namespace happy {

void nameserver_turns::failed() {
  if (open_ > 0) --open_;
  hurry_ = true;
}

bool nameserver_turns::round_is_over(time_point now) const {
  if (begun_ == 0) return true;
  return now >= round_end_ || (open_ == 0 && next_ == settings_.nameservers);
}

nameserver_turns::action nameserver_turns::poll(time_point now) {
  if (round_is_over(now)) {
    if (open_ > 0) {
      silent_ = true;
      open_ = 0;
      next_ = settings_.nameservers;
      return {.what = action::kind::forget};
    }
    if (begun_ == settings_.rounds) return {.what = action::kind::over};
    ++begun_;
    next_ = 0;
    hurry_ = false;
    round_end_ = now + settings_.round;
  }
  if (next_ < settings_.nameservers &&
      (open_ == 0 || hurry_ || now >= asked_at_ + overtake_after)) {
    hurry_ = false;
    asked_at_ = now;
    ++open_;
    return {.what = action::kind::ask, .which = next_++};
  }
  const time_point overtake =
      next_ < settings_.nameservers ? asked_at_ + overtake_after : round_end_;
  return {.what = action::kind::wait, .until = std::min(overtake, round_end_)};
}

}  // namespace happy
