// Every knob in one table: name, unit, range, default, help. The documentation and happy-run's checks
// are made from it.
#pragma once

#include <cstdint>
#include <span>

#include "shim/abi.h"

namespace happy {

struct knob {
  const char* name;  // environment variable
  const char* unit;  // "ms", "addresses", "0 or 1"
  std::int32_t minimum;
  std::int32_t maximum;
  std::int32_t fallback;
  std::int32_t happy_settings::*field;
  const char* help;
};

// All knobs that are numbers.
std::span<const knob> knobs();

// Everything at its default.
happy_settings default_settings();

// What the environment asks for.
struct environment {
  happy_settings settings;
  const char* trace_target = nullptr;  // HAPPY_TRACE: a path, or "-" for standard error; nullptr: off
  bool disabled = false;               // HAPPY_DISABLE=1
  int refused = 0;                     // values outside their range: the default holds instead
  const char* first_refused = nullptr; // "NAME=VALUE" of the first of them
};

// Reads HAPPY_* from `variables` (as environ). Signal-safe; pointers stay into `variables`.
environment read_environment(const char* const* variables);

}  // namespace happy
