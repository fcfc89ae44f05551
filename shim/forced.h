// HAPPY_FORCE=fail:NAME: lets parts of the table of real functions fail, so that whole programs and other
// people's test suites can be run on the paths that are taken when something is missing.
#pragma once

#include <cstdint>

#include "shim/abi.h"

namespace happy {

// Context:  before the engine is loaded, once.
void force_failures(happy_real& table, std::uint32_t force);

// Lets one call of the engine fail, the `which`-th (0: none), for a test that goes through all of them.
//
// Context:  as above. close() is never made to fail: it would leave what it was to close.
void fail_one_call(happy_real& table, int which);

}  // namespace happy
