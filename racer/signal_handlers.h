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

}  // namespace happy
