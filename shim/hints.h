// Names that a forked child has looked up, told to its parent: old programs resolve in a child, and the
// parent's connect() sees a bare address (see the engine's use of them in racer/hinted.h).
//
// The table lies in memory shared over fork, so a child that has changed sides can write anything into
// it. A hint is therefore a question to ask, never an answer.
#pragma once

#include "shim/abi.h"

namespace happy {

// Whether there is a table at all. Signal-safe.
bool has_hints();

// Makes the table, if this process has none yet. Called before every fork.
void prepare_hints();

// Tells what was found for a name. Does nothing without a table, or when the process no longer has the
// credentials under which the table was made. Lock-free.
void publish_hint(const happy_hint* hint);

// Looks for the latest hint about an address. False: none, or not to be trusted. Lock-free, signal-safe.
int find_hint(const sockaddr* to, socklen_t length, happy_hint* found);

}  // namespace happy
