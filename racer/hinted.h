// The engine's use of hints (shim/hints.h): a name that a forked child may have looked up.
#pragma once

#include "racer/core.h"

namespace happy {

// Tells the addresses of a lookup to the process's relatives.
void publish_hints(core& c, const intent& meant);

// For an address that no lookup of this process gave: if a child hints at a name, a lookup of that name
// is begun beside the program's attempt: it is in `c.intents` and `c.open_lookups` then. Its answers count
// only if they contain the address.
//
// Context:  the caller's thread, without the lock; sends queries, does not wait.
void follow_hint(core& c, const happy_connect& call, const endpoint& named);

}  // namespace happy
