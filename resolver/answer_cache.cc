#include "resolver/answer_cache.h"

#include <algorithm>
#include <atomic>

#include "resolver/host_name.h"
#include "resolver/sole_visit.h"

namespace happy {
namespace {

bool is_negative(answer_kind kind) {
  return kind == answer_kind::no_data || kind == answer_kind::name_error ||
         kind == answer_kind::hollow;
}

duration lifetime_of(const answer& a) {
  if (a.irregular) return duration::zero();
  if (a.kind == answer_kind::positive) return std::min(a.ttl, longest_positive);
  return is_negative(a.kind) ? longest_negative : std::chrono::seconds(0);
}

// The same addresses in another order.
bool is_rotation(const answer& a, const answer& b) {
  return a.addresses.size() == b.addresses.size() &&
         std::is_permutation(a.addresses.begin(), a.addresses.end(), b.addresses.begin()) &&
         !std::equal(a.addresses.begin(), a.addresses.end(), b.addresses.begin());
}

}  // namespace

void answer_cache::meet(std::uint64_t generation) {
  if (generation == generation_) return;
  clear();
  generation_ = generation;
}

std::unique_ptr<answer_cache::entry>* answer_cache::place_of(std::string_view name,
                                                             record_type type) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) {
    return e != nullptr && e->what.type == type && equal_ignoring_case(e->name, name);
  });
  return found == entries_.end() ? nullptr : &*found;
}

std::optional<answer> answer_cache::find(std::string_view name, record_type type,
                                         std::uint64_t generation, time_point now) {
  meet(generation);
  const std::unique_ptr<entry>* place = place_of(name, type);
  if (place == nullptr) return std::nullopt;
  entry& e = **place;
  if (now >= e.good_until) return std::nullopt;
  if (e.rotates)
    std::rotate(e.what.addresses.begin(), e.what.addresses.begin() + 1, e.what.addresses.end());
  answer known = e.what;
  // Nameservers repeat the question's spelling.
  if (e.own_name) known.canonical_name = name;
  if (!known.aliases.empty() && equal_ignoring_case(known.aliases[0], name))
    known.aliases[0] = name;
  known.ttl = std::chrono::floor<std::chrono::seconds>(e.good_until - now);
  return known;
}

void answer_cache::keep(std::string_view name, const answer& what, std::uint64_t generation,
                        time_point now) {
  meet(generation);
  std::unique_ptr<entry>* place = place_of(name, what.type);
  const duration lifetime = lifetime_of(what);
  if (lifetime <= duration::zero()) {
    if (place != nullptr) place->reset();
    return;
  }
  bool rotates = false;
  if (place != nullptr) {
    rotates = (*place)->rotates || is_rotation((*place)->what, what);
  } else {
    place = &*std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      if (a == nullptr || b == nullptr) return a == nullptr && b != nullptr;
      return a->good_until < b->good_until;
    });
  }
  *place = std::make_unique<entry>(entry{std::string(name), what, now + lifetime,
                                         rotates && !what.addresses.empty(),
                                         what.canonical_name == name});
}

void answer_cache::drop(std::string_view name) {
  name = without_dot(name);
  for (auto& e : entries_) {
    if (e == nullptr || e->name.size() < name.size()) continue;
    if (!equal_ignoring_case(std::string_view(e->name).substr(0, name.size()), name)) continue;
    if (e->name.size() == name.size() || e->name[name.size()] == '.') e->good_until = {};
  }
}

void answer_cache::clear() {
  for (auto& e : entries_) e.reset();
}

namespace {

// Taken by who finds it free; nobody waits, so a child forked while it is taken only does without.
constinit std::atomic<bool> busy{false};
// Part of the generation: what was kept before it changed is outdated, whoever holds the cache now.
constinit std::atomic<std::uint64_t> forgotten{0};

// Never destroyed: threads may look up while the process exits.
constinit std::atomic<answer_cache*> the_cache{nullptr};

// For who holds `busy`.
answer_cache& process_cache() {
  answer_cache* known = the_cache.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  known = new answer_cache;
  the_cache.store(known, std::memory_order_release);
  return *known;
}

// Counts of both kinds are small numbers.
std::uint64_t whole(std::uint64_t generation) {
  return generation ^ forgotten.load(std::memory_order_acquire) << 32;
}

}  // namespace

std::optional<answer> find_known_answer(std::string_view name, record_type type,
                                        std::uint64_t generation, time_point now) {
  const sole_visit h(busy);
  if (!h.mine()) return std::nullopt;
  return process_cache().find(name, type, whole(generation), now);
}

void keep_known_answer(std::string_view name, const answer& what, std::uint64_t generation,
                       time_point now) {
  const sole_visit h(busy);
  if (h.mine()) process_cache().keep(name, what, whole(generation), now);
}

void drop_known_answers(std::string_view name) noexcept {
  const sole_visit h(busy);
  if (!h.mine()) return forget_known_answers();
  answer_cache* known = the_cache.load(std::memory_order_acquire);
  if (known != nullptr) known->drop(name);
}

void forget_known_answers() noexcept { forgotten.fetch_add(1, std::memory_order_acq_rel); }

}  // namespace happy
