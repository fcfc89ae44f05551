#include "resolver/bridge.h"

#include <algorithm>

namespace happy {
namespace {

std::string folded(std::string_view name) {
  if (!name.empty() && name.back() == '.') name.remove_suffix(1);
  std::string result(name);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// FNV-1a
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const char c : text) value = (value ^ static_cast<std::uint8_t>(c)) * 0x100000001b3U;
  return value;
}

}  // namespace

// Neither the first nor the last address of the pool.
address bridge_table::address_for(std::string_view name) const {
  constexpr std::uint64_t hosts = (1U << 24) - 2;
  const std::uint64_t host = 1 + hash(folded(name)) % hosts;
  return make_ipv4(first_octet_, static_cast<std::uint8_t>(host >> 16),
                   static_cast<std::uint8_t>(host >> 8), static_cast<std::uint8_t>(host));
}

bool bridge_table::add(std::string_view name, std::vector<candidate> candidates) {
  const address ipv4 = address_for(name);
  const std::string same = folded(name);
  const auto known = std::find_if(names_.begin(), names_.end(),
                                  [&](const bridged_name& b) { return b.ipv4 == ipv4; });
  if (known != names_.end()) {
    if (known->name != same) return false;
    known->candidates = std::move(candidates);
    return true;
  }
  if (names_.size() == max_bridged_names) names_.pop_front();
  names_.push_back({ipv4, same, std::move(candidates)});
  return true;
}

const bridged_name* bridge_table::find(const address& ipv4) const {
  if (!is_in_pool(ipv4)) return nullptr;
  const auto known = std::find_if(names_.begin(), names_.end(),
                                  [&](const bridged_name& b) { return b.ipv4 == ipv4; });
  return known == names_.end() ? nullptr : &*known;
}

const bridged_name* bridge_table::find_by_endpoint(const address& ipv6) const {
  const auto known = std::find_if(names_.begin(), names_.end(), [&](const bridged_name& b) {
    return std::any_of(b.candidates.begin(), b.candidates.end(),
                       [&](const candidate& c) { return c.destination == ipv6; });
  });
  return known == names_.end() ? nullptr : &*known;
}

}  // namespace happy
