// Time as values. Nothing here can read a clock: the state machines receive `now` as a parameter,
// and only the outer loops (see racer/clock.h) ask the kernel.
#pragma once

#include <chrono>

namespace happy {

// CLOCK_MONOTONIC, without a now().
struct monotonic {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<monotonic>;
  static constexpr bool is_steady = true;
};

using time_point = monotonic::time_point;
using duration = monotonic::duration;
using std::chrono::milliseconds;

inline constexpr time_point never = time_point::max();

// Whole milliseconds from `now` until `deadline`, rounded up so that a wait never ends early; 0 if
// it has passed, -1 ("no limit", as poll() takes it) for `never`.
constexpr int wait_ms(time_point deadline, time_point now) {
  if (deadline == never) return -1;
  if (deadline <= now) return 0;
  const auto left = std::chrono::ceil<milliseconds>(deadline - now).count();
  constexpr auto longest = 1'000'000'000;  // 11 days: fits an int, longer than any wait here
  return static_cast<int>(left < longest ? left : longest);
}

}  // namespace happy
