// File descriptors where a program does not expect any: out of the way of its own.
#pragma once

#include "shim/base/result.h"
#include "shim/base/unique_fd.h"

namespace happy {

// Above what shell scripts and daemons address by number, below the 64 that the kernel's first fd
// table holds (growing it with a second thread alive stalls for milliseconds).
inline constexpr int first_hidden_fd = 24;

// Numbers that stay free under RLIMIT_NOFILE: the program's headroom is worth more than a race.
inline constexpr int fd_headroom = 64;

// Moves `fd`, which is close-on-exec, to a number of at least first_hidden_fd that is not 255 (where bash
// keeps its script), unless it has one already. What was given is closed or returned. Fails with EMFILE when the new number would
// leave fewer than fd_headroom above it.
//
// Context:  does not block, does not allocate.
result<unique_fd> hide(unique_fd fd);

}  // namespace happy
