// Moments on virtual time.
#pragma once

#include "shim/base/time.h"

namespace happy::test {

inline time_point at(int ms) { return time_point(milliseconds(ms)); }

}  // namespace happy::test
