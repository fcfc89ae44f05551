#include "racer/pace.h"

#include <algorithm>

namespace happy {

time_point pace::next_start(const address& where, time_point now) const {
  for (const count& c : counts_) {
    if (c.where != where || c.starts < max_starts_per_interval) continue;
    return std::max(now, c.since + pace_interval);
  }
  return now;
}

void pace::note_start(const address& where, time_point now) {
  count* mine = std::find_if(counts_.begin(), counts_.end(),
                             [&](const count& c) { return c.where == where && c.starts > 0; });
  if (mine == counts_.end()) {
    mine = std::min_element(counts_.begin(), counts_.end(),
                            [](const count& a, const count& b) { return a.since < b.since; });
    *mine = {.where = where};
  }
  if (mine->starts == 0 || now >= mine->since + pace_interval)
    *mine = {.where = where, .since = now};
  ++mine->starts;
}

}  // namespace happy
