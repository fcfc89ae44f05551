// The engine's side of the trace: lines go to the shim, which writes them.
#pragma once

#include <cstdint>

#include "shim/abi.h"
#include "shim/base/json_line.h"

namespace happy {

// Set once when the engine starts; before that nothing is traced.
void set_trace_host(const happy_host* host);

// One branch while the trace is off.
bool trace_on();

// A line with time, pid, tid and the id of the lookup it belongs to (0: none).
json_line trace_line(const char* event, std::uint64_t lookup);

// Finishes and hands over.
void emit(json_line& line);

}  // namespace happy
