// What happens to one connection attempt, worked out when it starts.
#pragma once

#include <vector>

#include "tests/sim/world.h"

namespace happy::sim {

enum class fate : std::uint8_t { connected, failed, troubled };

struct attempt_event {
  duration after{};
  fate what{};
};

// In the order of time; the last one ends the attempt. `since_begin`: when the first SYN goes out, counted
// from the beginning of the race. The kernel's schedule: four retransmissions a second apart, then each twice
// as far.
std::vector<attempt_event> attempt(const world& w, const path& p, duration since_begin);

}  // namespace happy::sim
