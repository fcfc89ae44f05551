// One simulated connection: the real state machines over a simulated clock, network and DNS.
#pragma once

#include <string>

#include "racer/race.h"
#include "tests/sim/lookup.h"
#include "tests/sim/world.h"

namespace happy::sim {

struct options {
  bool keep_trace = false;
  // The canary: a spacing that the race does not promise, so that the checks must speak up.
  duration demanded_floor = attempt_floor;
};

struct outcome {
  bool resolved = false;
  bool won = false;
  bool left = false;              // the program gave up
  duration decided_after{};       // from the lookup's end
  duration took{};                // with the lookup
  unsigned attempts = 0;          // that sent a SYN
  std::uint64_t fingerprint = 0;  // of all that was done, and when
  std::string violation;          // "" if everything held
  srv_draw draw;
  std::string trace;  // if kept: in the form of the scripts of tests/unit/race_test.cc
};

outcome run(const world& w, const options& o = {});

// What a client with foresight would need: the first answer of any endpoint of the list, all attempted at
// once as its answer comes. Negative if there is none.
duration best_possible(const world& w);

}  // namespace happy::sim
