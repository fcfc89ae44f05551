// HAPPY_TRACE: what libhappy did and why, as JSON lines in a file or on standard error.
#pragma once

#include <cstddef>

#include "shim/base/json_line.h"
#include "shim/policy.h"
#include "shim/process.h"

namespace happy {

// One branch while the trace is off.
inline bool trace_on() { return process_environment().settings.trace != 0; }

// A line with the common fields (time, pid, tid) begun.
json_line trace_line(const char* event);

// Writes a finished line with one write(2), or drops it if that would block or the file is not to be
// trusted; dropped lines are counted and told in the next line that gets through.
// Signal-safe, keeps errno.
void trace_write(const char* line, std::size_t length);

// {"event": EVENT, "reason": REASON}
void trace_note(const char* event, const char* reason);

// Why a call was left to the real function.
void trace_pass_line(const char* call, pass_reason reason);
inline void trace_pass(const char* call, pass_reason reason) {
  if (trace_on()) trace_pass_line(call, reason);
}

}  // namespace happy
