#include "resolver/attachment.h"

#include <fcntl.h>
#include <net/route.h>

#include <charconv>
#include <cstring>

#include "resolver/address_scope.h"
#include "resolver/connectivity.h"
#include "resolver/text_scan.h"
#include "shim/base/unique_fd.h"

namespace happy {
namespace {

constexpr std::uint64_t fnv_prime = 0x100000001b3u;

std::uint64_t mixed(std::uint64_t hash, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * fnv_prime;
  return hash;
}

std::uint64_t mixed(std::uint64_t hash, const address& a) {
  return mixed(hash, a.bytes.data(), a.bytes.size());
}

std::string_view word(std::string_view& rest) { return take_word(rest, is_space); }

std::optional<std::uint32_t> read_hex(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The beginning of a file, up to its last whole line.
std::string_view read_lines(const char* path, std::span<char> scratch) {
  errno_saver keep;
  const unique_fd fd(real->open(path, O_RDONLY | O_CLOEXEC));
  std::size_t filled = 0;
  while (fd.valid() && filled < scratch.size()) {
    const ssize_t count = real->read(fd.get(), scratch.data() + filled, scratch.size() - filled);
    if (count <= 0) break;
    filled += static_cast<std::size_t>(count);
  }
  const std::string_view text(scratch.data(), filled);
  const std::size_t end = text.rfind('\n');
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end + 1);
}

}  // namespace

std::optional<address> default_gateway(std::string_view routes) {
  take_line(routes);  // the heading
  while (!routes.empty()) {
    std::string_view line = take_line(routes);
    word(line);  // the interface
    const auto destination = read_hex(word(line));
    const auto gateway = read_hex(word(line));
    const auto flags = read_hex(word(line));
    if (!destination || !gateway || !flags) return std::nullopt;
    for (int i = 0; i < 3; ++i) word(line);
    const auto mask = read_hex(word(line));
    const bool is_default = *destination == 0 && mask && *mask == 0;
    if (!is_default || (*flags & RTF_GATEWAY) == 0) continue;
    in_addr in;
    std::memcpy(&in, &*gateway, sizeof in);  // the kernel prints its own words
    return from_in_addr(in);
  }
  return std::nullopt;
}

std::string_view hardware_address(std::string_view neighbours, const address& gateway) {
  const auto wanted = to_text(gateway);
  take_line(neighbours);
  while (!neighbours.empty()) {
    std::string_view line = take_line(neighbours);
    if (word(line) != wanted.chars) continue;
    word(line);  // the kind of hardware
    constexpr std::uint32_t complete = 2;
    std::string_view flags = word(line);
    if (flags.substr(0, 2) == "0x") flags.remove_prefix(2);
    if ((read_hex(flags).value_or(0) & complete) == 0) return {};
    return word(line);
  }
  return {};
}

std::uint64_t recognise_network(std::span<char> scratch) {
  const sources_outward out = find_sources_outward();
  std::uint64_t hash = 0xcbf29ce484222325u;
  bool recognised = false;
  if (out.ipv6.has_source) {
    hash = mixed(hash, out.ipv6.source);
    recognised = privacy_of(out.ipv6.source) == privacy::global;
  }
  if (out.ipv4.has_source) hash = mixed(hash, out.ipv4.source);
  if (!recognised && out.ipv4.has_source) {
    const auto gateway = default_gateway(read_lines("/proc/thread-self/net/route", scratch));
    if (!gateway) return 0;
    const std::string_view hardware =
        hardware_address(read_lines("/proc/thread-self/net/arp", scratch), *gateway);
    if (hardware.empty()) return 0;
    hash = mixed(mixed(hash, *gateway), hardware.data(), hardware.size());
    recognised = true;
  }
  return recognised && hash != 0 ? hash : 0;
}

}  // namespace happy
