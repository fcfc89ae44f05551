#include "resolver/hosts_names.h"

#include <bit>
#include <cstddef>

#include "resolver/host_name.h"
#include "resolver/text_scan.h"

namespace happy {
namespace {

// FNV-1a
std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : without_dot(name))
    hash = (hash ^ static_cast<unsigned char>(to_lower(c))) * 0x100000001b3u;
  return hash;
}

// What stands in the table; where, the other half says.
std::uint32_t mark_of(std::uint64_t hash) {
  const auto high = static_cast<std::uint32_t>(hash >> 32);
  return high == 0 ? 1 : high;
}

std::vector<std::uint64_t> hashes_of(std::string_view text) {
  std::vector<std::uint64_t> hashes;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    line = line.substr(0, line.find('#'));
    for (std::string_view word = take_word(line, is_space); !word.empty();
         word = take_word(line, is_space))
      hashes.push_back(hash_of(word));
  }
  return hashes;
}

// The place of the mark, or the free one where it would be.
std::size_t find(const std::vector<std::uint32_t>& table, std::uint64_t hash) {
  const std::size_t last = table.size() - 1;
  std::size_t at = static_cast<std::size_t>(hash) & last;
  while (table[at] != 0 && table[at] != mark_of(hash)) at = (at + 1) & last;
  return at;
}

}  // namespace

hosts_names::hosts_names(std::string_view text) {
  const std::vector<std::uint64_t> hashes = hashes_of(text);
  if (hashes.empty()) return;
  table_.resize(std::bit_ceil(2 * hashes.size()));
  for (const std::uint64_t hash : hashes) table_[find(table_, hash)] = mark_of(hash);
}

bool hosts_names::mention(std::string_view name) const {
  return !table_.empty() && table_[find(table_, hash_of(name))] != 0;
}

}  // namespace happy
