// The shim's table of real functions (see abi.h).
#pragma once

#include "shim/abi.h"

namespace happy {

// Finds connect(), which a signal handler may be the first to call, and points `real` at the table.
// Called once, from the constructor: each search costs all processes 1,200 instructions.
// Returns false if there is none: then nothing is hooked, for good.
bool find_connect();

// Finds all the others, and late_libc. Called before the engine is loaded, in getaddrinfo(), where
// allocating is allowed. Returns false if one is missing. HAPPY_FORCE and HAPPY_FAIL_CALL are in force
// from then on.
bool find_all_functions();

// Whether getaddrinfo() is another library's (is_libcs()). Once all functions are found.
bool names_are_others();

}  // namespace happy
