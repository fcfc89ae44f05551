#include "resolver/source_memory.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "resolver/clock.h"
#include "resolver/sole_visit.h"

namespace happy {

void source_memory::meet(time_point now) {
  if (since_ == never || (now >= since_ && now - since_ < source_lifetime)) return;
  clear();
}

void source_memory::clear() {
  since_ = never;
  sources_.clear();
  own_.reset();
}

std::optional<address> source_memory::find(const address& destination, time_point now) {
  meet(now);
  const auto known = std::find_if(sources_.begin(), sources_.end(),
                                  [&](const entry& e) { return e.destination == destination; });
  return known == sources_.end() ? std::nullopt : std::optional(known->source);
}

void source_memory::keep(const address& destination, const address& source, time_point now) {
  meet(now);
  if (sources_.push_back({destination, source})) since_ = std::min(since_, now);
}

own_address_list source_memory::own_addresses(time_point now) {
  meet(now);
  return own_;
}

void source_memory::keep_own_addresses(own_address_list list, time_point now) {
  meet(now);
  own_ = std::move(list);
  since_ = std::min(since_, now);
}

namespace {

// Taken by who finds it free; nobody waits, so a child forked while it is taken only does without.
constinit std::atomic<bool> busy{false};
constinit std::atomic<bool> outdated{false};

// For who holds `busy`. Never destroyed: threads may look up while the process exits.
source_memory& process_memory() {
  alignas(source_memory) static unsigned char storage[sizeof(source_memory)];
  static constinit source_memory* made = nullptr;
  if (made == nullptr) made = new (storage) source_memory;
  if (outdated.exchange(false, std::memory_order_acq_rel)) made->clear();
  return *made;
}

bool recall(candidate& c, time_point now) {
  const sole_visit h(busy);
  if (!h.mine()) return false;
  const std::optional<address> source = process_memory().find(c.destination, now);
  if (source) c.source = *source;
  c.has_source = source.has_value();
  return c.has_source;
}

void note(const candidate& c, time_point now) {
  const sole_visit h(busy);
  if (h.mine()) process_memory().keep(c.destination, c.source, now);
}

}  // namespace

void source_finder::find(candidate& c) {
  const time_point now = clock_now();
  if (said_ == kernel_said::lately && recall(c, now)) return;
  probe_.probe(c, 0);
  if (c.has_source) note(c, now);
}

own_address_list recent_own_addresses() {
  const sole_visit h(busy);
  return h.mine() ? process_memory().own_addresses(clock_now()) : nullptr;
}

void note_own_addresses(own_address_list list) {
  const sole_visit h(busy);
  if (h.mine()) process_memory().keep_own_addresses(std::move(list), clock_now());
}

void forget_sources() noexcept { outdated.store(true, std::memory_order_release); }

}  // namespace happy
