// What the program's signal handlers mean for a call that has to be restarted by hand.
#pragma once

#include <cstdint>

namespace happy {

enum class handlers : std::uint8_t {
  restarting,    // none, or all with SA_RESTART: an interrupted connect() goes on
  interrupting,  // all without it: an interrupted connect() returns EINTR
  mixed,         // both: only the kernel knows which one ran
};

// Of the signals that the calling thread has not blocked (`blocked`, bit 0 for signal 1): no other interrupts it.
//
// Context:  one system call per signal; signal-safe.
handlers installed_handlers(std::uint64_t blocked);

// The signals that wait, while all are blocked, and that the program had not blocked.
//
// Context:  one system call; signal-safe.
std::uint64_t due_signals(std::uint64_t blocked);

// Whether one of these would have ended a call which blocks: it has a handler. `timed`: with SA_RESTART, too.
//
// Context:  one system call for each; signal-safe.
bool interrupts(std::uint64_t due, bool timed);

}  // namespace happy
