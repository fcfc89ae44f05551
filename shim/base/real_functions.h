// The table of real functions, as the library at hand reaches it: the shim's own table, or in the
// engine the one that the shim handed over (see abi.h), or a test's.
#pragma once

#include "shim/abi.h"

namespace happy {

// One variable per library (hidden visibility); set once, before anything else runs there.
inline constinit const happy_real* real = nullptr;

}  // namespace happy
