#include "resolver/history.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "resolver/text_scan.h"

namespace happy {
namespace {

constexpr std::uint64_t fnv_basis = 0xcbf29ce484222325u;
constexpr std::uint64_t fnv_prime = 0x100000001b3u;

std::uint64_t checksum_of(const history_record& r) {
  std::array<std::uint8_t, sizeof r> bytes;
  std::memcpy(bytes.data(), &r, sizeof r);
  std::uint64_t hash = fnv_basis;
  for (std::size_t i = 0; i < offsetof(history_record, checksum); ++i)
    hash = (hash ^ bytes[i]) * fnv_prime;
  return hash;
}

std::int64_t in_ns(time_point t) { return t.time_since_epoch().count(); }

std::int64_t last_change(const history_record& r) { return std::max(r.failed_ns, r.succeeded_ns); }

}  // namespace

void seal(history_record& r) { r.checksum = checksum_of(r); }

bool is_sound(const history_record& r) {
  return r.kind >= history_kind::family && r.kind <= history_kind::address && r.network != 0 &&
         (r.family == family::ipv4 || r.family == family::ipv6) && r.failed_ns >= 0 &&
         r.succeeded_ns >= 0 && r.checksum == checksum_of(r);
}

std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = fnv_basis;
  for (const char c : name) hash = (hash ^ static_cast<std::uint8_t>(to_lower(c))) * fnv_prime;
  return hash;
}

void history::load(std::span<const history_record> image, time_point now) {
  clear();
  for (std::size_t i = 0; i < std::min(image.size(), records_.size()); ++i) {
    if (is_sound(image[i]) && last_change(image[i]) <= in_ns(now)) records_[i] = image[i];
  }
}

history::key history::key_of(history_kind kind, const address& a, std::uint64_t name) {
  key k{.kind = kind, .of = a.family};
  if (kind == history_kind::address) k.bytes = a.bytes;
  if (kind == history_kind::name) std::memcpy(k.bytes.data(), &name, sizeof name);
  return k;
}

const history_record* history::find(std::uint64_t network, const key& k) const {
  for (const history_record& r : records_) {
    const bool same_key = k.kind == history_kind::family || r.key == k.bytes;
    if (r.kind == k.kind && r.network == network && r.family == k.of && same_key) return &r;
  }
  return nullptr;
}

// Its own; else a free one; else that of what has not changed for the longest time.
std::size_t history::place_for(std::uint64_t network, const key& k) const {
  if (const history_record* r = find(network, k)) return static_cast<std::size_t>(r - &records_[0]);
  const auto older = [](const history_record& a, const history_record& b) {
    return last_change(a) < last_change(b);  // free ones have never changed
  };
  return static_cast<std::size_t>(std::min_element(records_.begin(), records_.end(), older) -
                                  records_.begin());
}

bool history::knows(std::uint64_t network) const {
  return network != 0 &&
         std::any_of(records_.begin(), records_.end(), [&](const history_record& r) {
           return r.kind != history_kind::none && r.network == network;
         });
}

// 0 for what is not demoted at all. An address for twice as long as its name, while the longest time is not
// reached: when the name's turn comes, the family's other addresses go first.
duration history::demotion(const history_record& r) const {
  const int enough = r.kind == history_kind::family ? failures_of_family : 1;
  if (r.failures < enough) return duration(0);
  const int doublings = r.failures - enough + (r.kind == history_kind::address ? 1 : 0);
  const int factor = doublings < 4 ? 1 << doublings : longest_demotion;  // 16 is more than 10
  return retry_ * std::min(factor, longest_demotion);
}

bool history::is_demoted(const history_record* r, time_point now) const {
  return r != nullptr && in_ns(now) - r->failed_ns < demotion(*r).count();
}

bool history::is_demoted(std::uint64_t network, const address& a, std::uint64_t name,
                         time_point now) const {
  return is_demoted(find(network, key_of(history_kind::family, a, 0)), now) ||
         is_demoted(find(network, key_of(history_kind::name, a, name)), now) ||
         is_demoted(find(network, key_of(history_kind::address, a, 0)), now);
}

bool history::was_used(std::uint64_t network, const address& a, time_point now) const {
  const history_record* r = find(network, key_of(history_kind::address, a, 0));
  return r != nullptr && r->succeeded_ns > r->failed_ns &&
         in_ns(now) - r->succeeded_ns < (retry_ * longest_demotion).count();
}

bool history::would_clear(std::uint64_t network, const address& a, std::uint64_t name) const {
  const auto has_failed = [&](history_kind kind, std::uint64_t n) {
    const history_record* r = find(network, key_of(kind, a, n));
    return r != nullptr && r->failures > 0;
  };
  return has_failed(history_kind::family, 0) || has_failed(history_kind::name, name) ||
         has_failed(history_kind::address, 0);
}

// `name`: whose failure it is, for a family's record.
std::uint64_t history::fail(std::uint64_t network, const key& k, std::uint64_t name,
                            time_point at) {
  const std::size_t place = place_for(network, k);
  const bool known = find(network, k) != nullptr;
  history_record r = known ? records_[place] : history_record{};
  r.network = network;
  r.kind = k.kind;
  r.family = k.of;
  if (k.kind == history_kind::family) {
    std::array<std::uint8_t, 16> whose{};
    std::memcpy(whose.data(), &name, sizeof name);
    // The same name again says nothing new of the family, until the family is suspected.
    const bool more = !known || r.failures != 1 || r.key != whose;
    if (!more) return 0;
    r.key = whose;
  } else {
    r.key = k.bytes;
  }
  // Programs that raced at the same time have seen one failure.
  const bool again = r.failures > 0 && in_ns(at) - r.failed_ns < demotion(r).count();
  if (!again && r.failures < UINT16_MAX) ++r.failures;
  r.failed_ns = in_ns(at);
  seal(r);
  records_[place] = r;
  return std::uint64_t{1} << place;
}

// `create`: it is worth remembering although nothing was known.
std::uint64_t history::succeed(std::uint64_t network, const key& k, bool create, time_point at) {
  const history_record* known = find(network, k);
  if (known == nullptr && !create) return 0;
  if (known != nullptr && known->failures == 0 && !create) return 0;
  const std::size_t place = place_for(network, k);
  history_record r = known != nullptr ? *known : history_record{};
  r.network = network;
  r.kind = k.kind;
  r.family = k.of;
  r.key = k.bytes;
  r.failures = 0;
  r.failed_ns = 0;
  r.succeeded_ns = in_ns(at);
  seal(r);
  records_[place] = r;
  return std::uint64_t{1} << place;
}

std::uint64_t history::apply(std::uint64_t network, const history_note& what) {
  if (network == 0) return 0;
  const key by_address = key_of(history_kind::address, what.where, 0);
  const key by_name = key_of(history_kind::name, what.where, what.name);
  const key by_family = key_of(history_kind::family, what.where, 0);
  std::uint64_t changed = 0;
  if (what.connected) {
    changed |= succeed(network, by_address, true, what.at);
    changed |= succeed(network, by_name, false, what.at);
    return changed | succeed(network, by_family, false, what.at);
  }
  changed |= fail(network, by_address, 0, what.at);
  if (what.name != 0) changed |= fail(network, by_name, 0, what.at);
  if (what.speaks_for_family && what.name != 0)
    changed |= fail(network, by_family, what.name, what.at);
  return changed;
}

}  // namespace happy
