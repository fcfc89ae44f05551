// Every knob in one table: name, grammar, unit, range, default, help. What the library parses, what
// happy-run checks and prints, and the README's table are made from it (scripts/list-knobs.cc).
#pragma once

#include <cstdint>
#include <span>

#include "shim/abi.h"

namespace happy {

enum class knob_kind : std::uint8_t {
  number,    // decimal digits, within the range
  path,      // a file, or "-" for standard error
  words,     // a list, by commas, of what force_words() has
  prefixes,  // a list, by commas, of NAT64 prefixes ("64:ff9b::/96"), or "none"
  choice,    // one of `choices`; the field becomes its place among them
  services,  // a list, by commas, of PORT=SCHEME
  srv,       // a list, by commas, of NAME or NAME=PORT, or "none"
};

// One HAPPY_* variable. An empty value is none at all: the default holds.
//
// The texts are arrays: pointers would be relocated, and their pages copied, in every process.
struct knob {
  char name[44];
  knob_kind kind;
  char unit[12];
  std::int32_t minimum;
  std::int32_t maximum;
  std::int32_t fallback;
  std::int32_t happy_settings::*field;  // where a number or the place of a choice goes
  char floor[64];  // why nothing below the minimum is taken; "" where it would merely make no sense
  char help[160];
  char choices[40] = "";  // separated by single spaces
};

std::span<const knob> knobs();

// The knob that sets `field`.
const knob& knob_of(std::int32_t happy_settings::*field);

// In this order each is at most the next.
inline constexpr std::int32_t happy_settings::*rising_fields[] = {
    &happy_settings::minimum_connection_attempt_delay_ms,
    &happy_settings::connection_attempt_delay_ms,
    &happy_settings::maximum_connection_attempt_delay_ms,
};

// What HAPPY_FORCE may list.
struct force_word {
  char name[16];
  std::uint32_t bit;  // HAPPY_FORCE_*
};
std::span<const force_word> force_words();

// Everything at its default.
happy_settings default_settings();

// What the environment asks for.
struct environment {
  happy_settings settings;
  const char* trace_target =
      nullptr;                   // HAPPY_TRACE: a path, or "-" for standard error; nullptr: off
  const char* pref64 = nullptr;  // HAPPY_PREF64, if it is such a list
  bool disabled = false;         // HAPPY_DISABLE=1
  int refused = 0;               // values that were not taken: the default holds instead
  char first_refused[160] = {};  // "NAME=VALUE" of the first of them, cut off where it is longer
};

// Reads HAPPY_* from `variables` (as environ). Signal-safe; `trace_target` and `pref64` stay pointers into them.
//
// Context:  in every process, before main(): a variable that is none of ours costs two comparisons.
environment read_environment(const char* const* variables);

}  // namespace happy
