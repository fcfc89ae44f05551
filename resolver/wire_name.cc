#include "resolver/wire_name.h"

namespace happy {
namespace {

constexpr std::uint8_t pointer_bits = 0xc0;

bool is_plain(std::uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

std::uint8_t in_lower_case(std::uint8_t c) {
  return c >= 'A' && c <= 'Z' ? static_cast<std::uint8_t>(c - 'A' + 'a') : c;
}

std::optional<wire_name> read(std::span<const std::uint8_t> packet, std::size_t at,
                              bool may_be_compressed) {
  wire_name name;
  const std::size_t start = at;
  std::size_t lowest = at;  // pointers lead backwards only, and so end
  std::size_t octets = 1;
  bool jumped = false;
  while (at < packet.size()) {
    const std::uint8_t length = packet[at];
    if (length == 0) {
      if (!jumped) name.size = at + 1 - start;
      return name;
    }
    if ((length & pointer_bits) == pointer_bits) {
      if (!may_be_compressed || packet.size() - at < 2) return std::nullopt;
      const std::size_t to =
          static_cast<std::size_t>((length & ~pointer_bits) << 8 | packet[at + 1]);
      if (to >= lowest) return std::nullopt;
      if (!jumped) name.size = at + 2 - start;
      jumped = true;
      lowest = at = to;
      continue;
    }
    octets += length + 1u;
    if ((length & pointer_bits) != 0 || packet.size() - at <= length || octets > max_wire_name)
      return std::nullopt;
    if (!name.text.empty()) name.text += '.';
    for (const std::uint8_t raw : packet.subspan(at + 1, length)) {
      const std::uint8_t c = in_lower_case(raw);
      name.plain = name.plain && is_plain(c);
      name.text += static_cast<char>(c);
    }
    at += length + 1u;
  }
  return std::nullopt;
}

}  // namespace

std::optional<wire_name> read_uncompressed_name(std::span<const std::uint8_t> data) {
  return read(data, 0, false);
}

std::optional<wire_name> read_name(std::span<const std::uint8_t> packet, std::size_t at) {
  return read(packet, at, true);
}

}  // namespace happy
