// File descriptors where a program does not expect any: out of the way of its own.
#pragma once

#include "shim/base/hidden_numbers.h"
#include "shim/base/result.h"
#include "shim/base/unique_fd.h"

namespace happy {

// Moves `fd`, which is close-on-exec, to a number of at least first_hidden_fd that is not 255 (where bash
// keeps its script), unless it has one already. What was given is closed or returned. Fails with EMFILE when the new number would
// leave fewer than fd_headroom above it.
//
// Context:  does not block, does not allocate.
result<unique_fd> hide(unique_fd fd);

}  // namespace happy
