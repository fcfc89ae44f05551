// The swap: the winner's socket goes behind the program's descriptor.
#pragma once

#include "racer/pending.h"

namespace happy {

// Whether the original could be replaced wherever this process shows it. False: another process has it
// too, or under too many numbers.
bool can_hand_over(const pending_race& r);

// Puts the winner behind every number under which the program has the original, each keeping its
// FD_CLOEXEC, and into every epoll set that watches one of them, with the program's events and data. The
// original is left to `r.original_dup`.
//
// An original that is still connecting does not connect any more from the first step on: a program that woke
// for it would talk on it, and what it said would be lost with it.
//
// Returns:  false if the program has closed or replaced its descriptor, if the original has connected
//           meanwhile (has_connected()), or a step failed before the descriptor was replaced; nothing is
//           changed then.
// Context:  any thread, with the engine's lock: the hooks of close(), dup2() and epoll_ctl() wait for it
//           while races of non-blocking sockets are pending. Does not block.
bool hand_over(pending_race& r);

// The same for a socket that has no connection and none under way, which cannot do what is asked of it: nothing is
// kept of it. What a relative has of it stays that.
//
// Returns:  false if the program has closed or replaced its descriptor, or a step failed before it was replaced.
// Context:  as above.
bool replace_unconnected(pending_race& r);

}  // namespace happy
