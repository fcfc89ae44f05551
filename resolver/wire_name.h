// Domain names in their wire form (RFC 1035 s3.1).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace happy {

// RFC 1035 s2.3.4: octets of a name with its length bytes.
inline constexpr std::size_t max_wire_name = 255;

struct wire_name {
  std::string text;      // in lower case, without the last dot; empty: the root
  std::size_t size = 0;  // octets that it takes where it stands
  bool plain = true;  // letters, digits, hyphens and underscores only: it can be asked for as text
};

// The name at the beginning of `data`; nullopt where it does not end there, is too long, or is compressed.
//
// Context:  pure.
std::optional<wire_name> read_uncompressed_name(std::span<const std::uint8_t> data);

// The name at `at` in a message, compressed or not. `size` counts what it takes at `at`.
std::optional<wire_name> read_name(std::span<const std::uint8_t> packet, std::size_t at);

}  // namespace happy
