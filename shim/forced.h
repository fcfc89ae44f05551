// HAPPY_FORCE=fail:NAME: lets parts of the table of real functions fail, so that whole programs and other
// people's test suites can be run on the paths that are taken when something is missing.
#pragma once

#include <cstdint>

#include "shim/abi.h"

namespace happy {

// Context:  before the engine is loaded, once.
void force_failures(happy_real& table, std::uint32_t force);

}  // namespace happy
