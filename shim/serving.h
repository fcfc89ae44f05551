// Which processes must see complete results of lookups, and which nothing of ours.
#pragma once

namespace happy {

// The process serves: it has called listen() or accept() on a socket of IP. Signal-safe.
void note_serving();
bool is_serving();

// Looks at the program's name (its argv[0]), once: daemons write their state over it later (setproctitle). False: a
// connection that was raced is of no use to the program.
bool note_program(const char* path);

// Whether lookups of this process wait for both families, as libc's do: it serves, it is a program that
// compares addresses instead of connecting to them, or HAPPY_PARTIAL=0 says so.
bool wants_complete_results();

}  // namespace happy
