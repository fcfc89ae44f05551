// The clock, for the outer loops alone: they read it once per turn and hand the value on.
#pragma once

#include "shim/base/real_functions.h"
#include "shim/base/time.h"

namespace happy {

// CLOCK_MONOTONIC. Signal-safe.
inline time_point clock_now() {
  timespec t{};
  real->clock_gettime(CLOCK_MONOTONIC, &t);
  return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

}  // namespace happy
