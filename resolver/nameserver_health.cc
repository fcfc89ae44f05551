#include "resolver/nameserver_health.h"

namespace happy {
namespace {

std::int64_t nanoseconds_of(time_point t) { return t.time_since_epoch().count(); }

constinit nameserver_health process_health;

}  // namespace

nameserver_health& known_health() { return process_health; }

// FNV-1a; never 0, which marks a free row.
std::uint64_t nameserver_health::key_of(const address& nameserver, bool edns) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (const std::uint8_t byte : nameserver.bytes) add(byte);
  add(nameserver.scope);
  add(nameserver.family == family::ipv6 ? 1 : 0);
  add(edns ? 1 : 0);
  return hash | 1;
}

nameserver_health::row& nameserver_health::claim(std::uint64_t key) {
  row& r = rows_[(key >> 1) % health_rows];
  if (r.key.exchange(key, std::memory_order_relaxed) != key) {
    r.answered_ns.store(0, std::memory_order_relaxed);
    r.penalised_until_ns.store(0, std::memory_order_relaxed);
  }
  return r;
}

void nameserver_health::answered(std::uint64_t key, time_point now) {
  row& r = claim(key);
  r.answered_ns.store(nanoseconds_of(now), std::memory_order_relaxed);
  r.penalised_until_ns.store(0, std::memory_order_relaxed);
}

void nameserver_health::overtaken(std::uint64_t key, time_point asked, time_point now) {
  row& r = claim(key);
  if (r.answered_ns.load(std::memory_order_relaxed) >= nanoseconds_of(asked)) return;
  r.penalised_until_ns.store(nanoseconds_of(now + nameserver_penalty), std::memory_order_relaxed);
}

bool nameserver_health::is_penalised(std::uint64_t key, time_point now) const {
  const row& r = rows_[(key >> 1) % health_rows];
  return r.key.load(std::memory_order_relaxed) == key &&
         r.penalised_until_ns.load(std::memory_order_relaxed) > nanoseconds_of(now);
}

void nameserver_health::clear() {
  for (row& r : rows_) {
    r.key.store(0, std::memory_order_relaxed);
    r.answered_ns.store(0, std::memory_order_relaxed);
    r.penalised_until_ns.store(0, std::memory_order_relaxed);
  }
}

}  // namespace happy
