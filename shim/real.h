// The shim's table of real functions (see abi.h).
#pragma once

#include <cstdint>

#include "shim/abi.h"

namespace happy {

// Finds the few functions that the shim itself hooks, by dlsym(RTLD_NEXT), and points `real` at the
// table. Called once, from the constructor: dlsym allocates and is not signal-safe.
// Returns false if one is missing: then nothing is hooked, for good.
bool find_hooked_functions();

// Finds all the others. Called before the engine is loaded, in getaddrinfo(), where allocating is
// allowed. Returns false if one is missing. `force`: HAPPY_FORCE_* bits; `fail_call`:
// HAPPY_FAIL_CALL.
bool find_all_functions(std::uint32_t force, int fail_call);

}  // namespace happy
