// The PREF64 option of router advertisements: RFC 8781 s4, pure.
#pragma once

#include <chrono>
#include <optional>
#include <span>

#include "resolver/translation.h"

namespace happy {

struct pref64_option {
  nat64_prefix prefix;
  std::chrono::seconds lifetime{0};  // 0: withdrawn
};

// Reads an option from its type octet on. nullopt: another type, too short, a length other than 16, a
// prefix length code that is reserved, or what cannot be a prefix.
std::optional<pref64_option> parse_pref64(std::span<const std::uint8_t> option);

}  // namespace happy
