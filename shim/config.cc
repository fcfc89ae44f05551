#include "shim/config.h"

#include <cstring>

namespace happy {
namespace {

// hev3 Summary of Configurable Values; the bounds of ATTEMPT-5.
constexpr knob all_knobs[] = {
    {"HAPPY_RESOLUTION_DELAY_MS", "ms", 0, 10'000, 50, &happy_settings::resolution_delay_ms,
     "how long a lookup that has an address waits for the preferred family"},
    {"HAPPY_CONNECTION_ATTEMPT_DELAY_MS", "ms", 10, 10'000, 250,
     &happy_settings::connection_attempt_delay_ms,
     "time between one connection attempt and the next"},
    {"HAPPY_MINIMUM_CONNECTION_ATTEMPT_DELAY_MS", "ms", 10, 10'000, 100,
     &happy_settings::minimum_connection_attempt_delay_ms,
     "lower bound of the connection attempt delay; under 10 ms is forbidden"},
    {"HAPPY_MAXIMUM_CONNECTION_ATTEMPT_DELAY_MS", "ms", 10, 10'000, 2000,
     &happy_settings::maximum_connection_attempt_delay_ms,
     "upper bound of the connection attempt delay"},
    {"HAPPY_LAST_RESORT_SYNTHESIS_DELAY_MS", "ms", 0, 60'000, 2000,
     &happy_settings::last_resort_synthesis_delay_ms,
     "wait after the last IPv6 attempt before IPv4 is synthesised (IPv6-only networks)"},
    {"HAPPY_PREFERRED_ADDRESS_FAMILY_COUNT", "addresses", 1, 48, 1,
     &happy_settings::preferred_address_family_count,
     "addresses of the first family tried before the first of the other"},
};

// The value behind "NAME=", or nullptr.
const char* value_of(const char* variable, const char* name) {
  const std::size_t length = std::strlen(name);
  if (std::strncmp(variable, name, length) != 0 || variable[length] != '=') return nullptr;
  return variable + length + 1;
}

// A decimal number without sign, or -1.
std::int32_t parse_number(const char* text) {
  constexpr std::int32_t most = 100'000'000;  // above every maximum in the table
  if (*text == 0) return -1;
  std::int32_t value = 0;
  for (; *text != 0; ++text) {
    if (*text < '0' || *text > '9' || value > most) return -1;
    value = value * 10 + (*text - '0');
  }
  return value;
}

void refuse(environment& e, const char* variable) {
  if (e.refused++ == 0) e.first_refused = variable;
}

void read_variable(environment& e, const char* variable) {
  if (const char* target = value_of(variable, "HAPPY_TRACE")) {
    e.trace_target = *target != 0 ? target : nullptr;
    e.settings.trace = e.trace_target != nullptr;
    return;
  }
  if (const char* off = value_of(variable, "HAPPY_DISABLE")) {
    const std::int32_t value = parse_number(off);
    e.disabled = value == 1;
    if (value != 0 && value != 1 && *off != 0) refuse(e, variable);
    return;
  }
  for (const knob& k : all_knobs) {
    const char* text = value_of(variable, k.name);
    if (text == nullptr) continue;
    const std::int32_t value = parse_number(text);
    if (value < k.minimum || value > k.maximum) return refuse(e, variable);
    e.settings.*k.field = value;
  }
}

}  // namespace

std::span<const knob> knobs() { return all_knobs; }

happy_settings default_settings() {
  happy_settings settings{};
  for (const knob& k : all_knobs) settings.*k.field = k.fallback;
  settings.partial = 1;
  return settings;
}

environment read_environment(const char* const* variables) {
  environment e;
  e.settings = default_settings();
  if (variables == nullptr) return e;
  for (; *variables != nullptr; ++variables) {
    if (std::strncmp(*variables, "HAPPY_", 6) == 0) read_variable(e, *variables);
  }
  return e;
}

}  // namespace happy
