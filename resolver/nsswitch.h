// The hosts line of nsswitch.conf: which modules are asked for a name, in which order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace happy {

enum class lookup_status : std::uint8_t { success, not_found, unavailable, try_again };
enum class lookup_action : std::uint8_t { go_on, stop, merge };

struct name_service {
  std::string module;
  std::array<lookup_action, 4> actions{lookup_action::stop, lookup_action::go_on,
                                       lookup_action::go_on, lookup_action::go_on};

  lookup_action on(lookup_status s) const { return actions[static_cast<std::size_t>(s)]; }
};

// No system lists more; ends the parsing of nonsense.
inline constexpr std::size_t max_name_services = 32;

// Pure. Without a hosts line glibc's default, "files dns". nullopt for what glibc rejects, and for
// what it treats in a surprising way.
std::optional<std::vector<name_service>> parse_nsswitch(std::string_view text);

}  // namespace happy
