// How fast one process starts hidden attempts at one address, however many races it runs together.
#pragma once

#include <array>
#include <cstddef>

#include "shim/base/endpoint.h"
#include "shim/base/time.h"

namespace happy {

// Races that a crowd of connect() calls has begun at one moment are due at one moment too, and so are those that
// have waited for descriptors or for a process that was stopped. 128 is the backlog that servers ask for by habit, and
// at a round trip of 10 ms the handshakes of one interval are under way together. A thousand races take 80 ms to start.
inline constexpr std::size_t max_starts_per_interval = 128;
inline constexpr duration pace_interval = milliseconds(10);

// Addresses that are kept count of; the one counted longest ago makes room, and begins anew.
inline constexpr std::size_t max_paced_addresses = 16;

class pace {
 public:
  // When an attempt at `where` may start: `now`, or the end of an interval that has had its share.
  time_point next_start(const address& where, time_point now) const;

  void note_start(const address& where, time_point now);

 private:
  struct count {
    address where{};
    time_point since = time_point::min();
    std::size_t starts = 0;
  };

  std::array<count, max_paced_addresses> counts_{};
};

}  // namespace happy
