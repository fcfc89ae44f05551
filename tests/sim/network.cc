#include "tests/sim/network.h"

#include <iterator>

namespace happy::sim {
namespace {

constexpr std::chrono::seconds syn_at[] = {std::chrono::seconds(0), std::chrono::seconds(1),
                                           std::chrono::seconds(2), std::chrono::seconds(3),
                                           std::chrono::seconds(4), std::chrono::seconds(6),
                                           std::chrono::seconds(10)};
constexpr std::chrono::seconds given_up_after[] = {
    std::chrono::seconds(1),  std::chrono::seconds(3),  std::chrono::seconds(7),
    std::chrono::seconds(19), std::chrono::seconds(35), std::chrono::seconds(69),
    std::chrono::seconds(135)};

// Both ways; depends on nothing but the packet, so that shrinking changes no other packet's luck.
bool is_lost(const world& w, const path& p, unsigned syn) {
  random_numbers luck(w.seed ^ (std::uint64_t{p.where.bytes[15]} << 8) ^
                      (std::uint64_t{p.where.bytes[3]} << 16) ^ (std::uint64_t{syn} << 32));
  luck.next();
  const bool there = luck.chance(p.loss_percent);
  const bool back = luck.chance(p.loss_percent);
  return there || back;
}

bool is_dark(const path& p, duration at) { return at >= p.dark_from && at < p.dark_until; }

}  // namespace

std::vector<attempt_event> attempt(const world& w, const path& p, duration since_begin) {
  std::vector<attempt_event> events;
  for (unsigned i = 0; i <= static_cast<unsigned>(w.syn_retries); ++i) {
    const duration sent = syn_at[i];
    if (p.reply == answers_with::nothing || is_lost(w, p, i) || is_dark(p, since_begin + sent))
      continue;
    const duration answered = sent + p.rtt;
    switch (p.reply) {
      case answers_with::syn_ack: events.push_back({answered, fate::connected}); return events;
      case answers_with::reset:
      case answers_with::hard_error: events.push_back({answered, fate::failed}); return events;
      case answers_with::soft_error: events.push_back({answered, fate::troubled}); break;
      case answers_with::nothing: break;
    }
  }
  events.push_back({given_up_after[w.syn_retries] + p.rtt, fate::failed});
  return events;
}

}  // namespace happy::sim
