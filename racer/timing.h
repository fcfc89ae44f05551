// The specification's time constants, and what the user's settings make of them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "shim/abi.h"
#include "shim/base/time.h"

namespace happy {

// "a subsequent connection MUST NOT be started within 10 milliseconds of the previous attempt"
// Spec:     hev3 Connection Attempts, ATTEMPT-5
inline constexpr duration attempt_floor = milliseconds(10);

// HAPPY_PROFILE, in the order of its words.
enum class timing_profile : std::uint8_t {
  standard,  // hev3
  fast,      // the first attempts follow each other sooner
  v2,        // RFC 8305 where it differs, which is in the lookup
};

// The fast profile's first delay; each later one is twice as long, up to the Connection Attempt Delay. 94 of
// 100 connections are won by the first attempt and 99 by the second, whatever the delays (browser
// telemetry, 2026), so that the load stays what it is.
inline constexpr duration fast_first_delay = milliseconds(50);

// When a SYN towards a path with this round-trip time would be sent again by RFC 6298 s2.2 and s2.3. Without a
// variance it is half the time, as after a first measurement. 0 for an unknown path.
constexpr duration expected_handshake(duration rtt, duration variance) {
  return rtt + 4 * (variance > duration(0) ? variance : rtt / 2);
}

// What was measured longer ago says how fast a path can be, not that it still answers.
inline constexpr duration recent_history = std::chrono::minutes(5);

// Spec:     hev3 Summary of Configurable Values
struct race_timing {
  duration attempt_delay = milliseconds(250);  // between attempts, without knowledge of the path
  duration minimum_delay = milliseconds(100);
  duration maximum_delay = std::chrono::seconds(2);
  duration last_resort_delay = std::chrono::seconds(2);  // V6ONLY-8
  int preferred_family_count = 1;
  // A priority group of SRV whose attempts keep silent counts as exhausted that long after its last start:
  // the kernel alone would take two minutes to give up a SYN.
  duration group_patience = std::chrono::seconds(10);
  timing_profile profile = timing_profile::standard;
  // SUCCESS-1: a complete handshake is success. False: a `succeeded` has to follow.
  bool handshake_decides = true;

  // How long after the start of an attempt the next one may start: inside the bounds, and never under the
  // floor. `expected`: the attempt's own handshake time, 0 if unknown, which makes the delay longer only where it
  // was seen `lately`: a slow path that has gone dark since would hold up the others most. `earlier`: attempts
  // before it.
  //
  // Spec:     hev3 Connection Attempts, ATTEMPT-4
  constexpr duration delay(duration expected = duration(0), bool lately = true,
                           std::size_t earlier = 0) const {
    if (profile == timing_profile::fast) return std::max(fast_delay(earlier), attempt_floor);
    duration wanted = expected > duration(0) ? expected : attempt_delay;
    if (!lately) wanted = std::min(wanted, attempt_delay);
    return std::max(std::min(std::max(wanted, minimum_delay), maximum_delay), attempt_floor);
  }

 private:
  constexpr duration fast_delay(std::size_t earlier) const {
    constexpr std::size_t doublings = 16;  // from then on longer than every setting
    return std::min(fast_first_delay * (1 << std::min(earlier, doublings)), attempt_delay);
  }
};

inline race_timing timing_from(const happy_settings& s) {
  return {.attempt_delay = milliseconds(s.connection_attempt_delay_ms),
          .minimum_delay = milliseconds(s.minimum_connection_attempt_delay_ms),
          .maximum_delay = milliseconds(s.maximum_connection_attempt_delay_ms),
          .last_resort_delay = milliseconds(s.last_resort_synthesis_delay_ms),
          .preferred_family_count = s.preferred_address_family_count,
          .group_patience = milliseconds(s.srv_patience_ms),
          .profile = static_cast<timing_profile>(s.profile)};
}

}  // namespace happy
