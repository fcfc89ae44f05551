// What the program's signal handlers mean for a call that has to be restarted by hand.
#pragma once

#include <cstdint>

namespace happy {

enum class handlers : std::uint8_t {
  restarting,    // none, or all with SA_RESTART: an interrupted connect() goes on
  interrupting,  // all without it: an interrupted connect() returns EINTR
  mixed,         // both: only the kernel knows which one ran
};

// Context:  one system call per signal; signal-safe.
handlers installed_handlers();

// Whether a signal waits, while all are blocked, that would have ended a call which blocks: one that the program
// had not blocked (`blocked`, bit 0 for signal 1) and has a handler for. `timed`: with SA_RESTART, too.
//
// Context:  two system calls, as a rule one; signal-safe.
bool interruption_is_due(std::uint64_t blocked, bool timed);

}  // namespace happy
