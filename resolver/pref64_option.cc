#include "resolver/pref64_option.h"

#include <iterator>

namespace happy {
namespace {

constexpr std::uint8_t option_type = 38;
constexpr std::size_t option_size = 16;
constexpr std::uint8_t option_units = 2;  // of eight octets
constexpr unsigned length_code_bits = 3;  // the lifetime is counted in units of 8 s

}  // namespace

std::optional<pref64_option> parse_pref64(std::span<const std::uint8_t> option) {
  if (option.size() < option_size || option[0] != option_type || option[1] != option_units)
    return std::nullopt;
  const unsigned word = option[2] * 256U + option[3];
  // translation_lengths stand in the order of the codes.
  const std::size_t code = word & ((1U << length_code_bits) - 1);
  if (code >= std::size(translation_lengths)) return std::nullopt;
  address a{.family = family::ipv6};
  constexpr std::size_t prefix_at = 4;
  for (std::size_t i = prefix_at; i < option_size; ++i) a.bytes[i - prefix_at] = option[i];
  const auto prefix = make_prefix(a, translation_lengths[code]);
  if (!prefix) return std::nullopt;
  return pref64_option{*prefix, std::chrono::seconds(word & ~((1U << length_code_bits) - 1))};
}

}  // namespace happy
