// The specification's time constants, and what the user's settings make of them.
#pragma once

#include <algorithm>

#include "shim/abi.h"
#include "shim/base/time.h"

namespace happy {

// "a subsequent connection MUST NOT be started within 10 milliseconds of the previous attempt"
// Spec:     hev3 Connection Attempts, ATTEMPT-5
inline constexpr duration attempt_floor = milliseconds(10);

// Spec:     hev3 Summary of Configurable Values
struct race_timing {
  duration attempt_delay = milliseconds(250);  // between attempts, without knowledge of the path
  duration minimum_delay = milliseconds(100);
  duration maximum_delay = std::chrono::seconds(2);
  int preferred_family_count = 1;

  // The delay in force: inside the bounds, and never under the floor.
  constexpr duration delay() const {
    const duration bounded = std::min(std::max(attempt_delay, minimum_delay), maximum_delay);
    return std::max(bounded, attempt_floor);
  }
};

inline race_timing timing_from(const happy_settings& s) {
  return {.attempt_delay = milliseconds(s.connection_attempt_delay_ms),
          .minimum_delay = milliseconds(s.minimum_connection_attempt_delay_ms),
          .maximum_delay = milliseconds(s.maximum_connection_attempt_delay_ms),
          .preferred_family_count = s.preferred_address_family_count};
}

}  // namespace happy
