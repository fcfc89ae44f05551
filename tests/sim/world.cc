#include "tests/sim/world.h"

#include <sstream>

namespace happy::sim {
namespace {

path make_path(random_numbers& random, family f, std::uint8_t number, unsigned dead_percent) {
  path p;
  if (f == family::ipv4) {
    p.where = make_ipv4(192, 0, 2, number);
  } else {
    p.where.family = family::ipv6;
    p.where.bytes = {0x20, 0x01, 0x0d, 0xb8};
    p.where.bytes[15] = number;
  }
  p.rtt = random.chance(80) ? random.between(1, 80) : random.between(80, 600);
  if (random.chance(30)) p.remembered = random.chance(80) ? 2 * p.rtt : random.between(1, 3000);
  if (random.chance(dead_percent)) {
    constexpr answers_with deaths[] = {answers_with::nothing, answers_with::nothing,
                                       answers_with::reset, answers_with::soft_error,
                                       answers_with::hard_error};
    p.reply = deaths[random.below(std::size(deaths))];
    if (random.chance(10)) p.routed = false;
  }
  // The longer ago, the likelier something has happened to it since.
  p.lately =
      p.remembered != duration(0) && random.chance(p.reply == answers_with::syn_ack ? 70 : 10);
  if (random.chance(15)) p.loss_percent = static_cast<unsigned>(random.below(40));
  if (random.chance(10)) {
    p.dark_from = random.between(0, 400);
    p.dark_until = p.dark_from + random.between(1, 4000);
  }
  return p;
}

query_fate make_fate(random_numbers& random) {
  query_fate fate;
  fate.repeated = random.chance(10);
  fate.after = random.chance(85) ? random.between(1, 60) : random.between(60, 7000);
  if (random.chance(20)) {
    constexpr dns_reply replies[] = {dns_reply::no_data, dns_reply::name_error,
                                     dns_reply::server_failure, dns_reply::silent};
    fate.reply = replies[random.below(std::size(replies))];
  }
  return fate;
}

// One name in seven is a service's, with targets of which some share a priority.
void add_srv(random_numbers& random, world& w) {
  if (!random.chance(15)) return;
  constexpr std::uint16_t priorities[] = {0, 0, 5, 9};
  constexpr std::uint16_t weights[] = {0, 1, 5, 10, 60, 1000};
  for (std::uint64_t i = 1 + random.below(5); i > 0; --i) {
    w.targets.push_back({.priority = priorities[random.below(std::size(priorities))],
                         .weight = weights[random.below(std::size(weights))],
                         .aaaa = make_fate(random),
                         .a = make_fate(random)});
  }
  for (path& p : w.paths) {
    p.target = static_cast<std::uint32_t>(random.below(w.targets.size() + 1));
    p.in_reserve = false;
  }
  // Delegations that lead nowhere: whole targets of which nothing is ever heard, in the end every one.
  const unsigned silent_percent = random.chance(20) ? 60 : 0;
  for (srv_target& t : w.targets) {
    if (random.chance(silent_percent)) t.aaaa.reply = t.a.reply = dns_reply::silent;
  }
  w.srv = make_fate(random);
  w.srv_refuses = random.chance(5);
  w.asks_for_service = false;
  w.changes.clear();
  if (random.chance(50)) w.timing.group_patience = random.between(0, 5000);
}

race_timing make_timing(random_numbers& random) {
  race_timing t;
  if (random.chance(20)) t.profile = timing_profile::fast;
  if (random.chance(20)) t.profile = timing_profile::v2;
  if (random.chance(20)) t.attempt_delay = random.between(10, 3000);
  if (random.chance(20)) t.minimum_delay = random.between(10, 250);
  if (random.chance(20)) t.maximum_delay = random.between(250, 5000);
  if (random.chance(20)) t.preferred_family_count = 1 + static_cast<int>(random.below(3));
  return t;
}

const char* to_text(answers_with reply) {
  switch (reply) {
    case answers_with::syn_ack: return "answers";
    case answers_with::reset: return "refuses";
    case answers_with::soft_error: return "soft error";
    case answers_with::hard_error: return "hard error";
    case answers_with::nothing: return "silent";
  }
  return "?";
}

const char* to_text(dns_reply reply) {
  switch (reply) {
    case dns_reply::positive: return "positive";
    case dns_reply::no_data: return "no data";
    case dns_reply::name_error: return "no such name";
    case dns_reply::server_failure: return "server failure";
    case dns_reply::silent: return "silent";
  }
  return "?";
}

double ms(duration d) { return static_cast<double>(d.count()) / 1e6; }

}  // namespace

// splitmix64
std::uint64_t random_numbers::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// In microseconds, so that events seldom coincide by accident; sometimes on the millisecond, so that they do.
duration random_numbers::between(int low_ms, int high_ms) {
  const auto span = static_cast<std::uint64_t>(high_ms - low_ms);
  if (chance(30)) return milliseconds(low_ms + static_cast<int>(below(span + 1)));
  return milliseconds(low_ms) + std::chrono::microseconds(below(span * 1000 + 1));
}

world make_world(std::uint64_t seed) {
  random_numbers random(seed);
  world w;
  w.seed = seed;
  w.timing = make_timing(random);
  const std::uint64_t most = random.chance(80) ? 3 : most_endpoints;
  const std::uint64_t six = random.below(most + 1);
  const std::uint64_t four = six == 0 ? 1 + random.below(most) : random.below(most + 1);
  const unsigned six_dead = random.chance(40) ? 80 : 10;
  const unsigned four_dead = random.chance(20) ? 80 : 10;
  for (std::uint64_t i = 1; i <= six; ++i) {
    w.paths.push_back(make_path(random, family::ipv6, static_cast<std::uint8_t>(i), six_dead));
  }
  for (std::uint64_t i = 1; i <= four; ++i) {
    w.paths.push_back(make_path(random, family::ipv4, static_cast<std::uint8_t>(i), four_dead));
  }
  if (random.chance(15)) {
    for (path& p : w.paths) p.group = static_cast<std::uint32_t>(random.below(3));
  }
  w.aaaa = make_fate(random);
  w.a = make_fate(random);
  w.asks_for_service = random.chance(25);
  w.service = make_fate(random);
  if (w.service.reply == dns_reply::positive) w.service.reply = dns_reply::no_data;
  if (random.chance(10)) {
    path p = make_path(random, family::ipv6, 100, four_dead);
    p.in_reserve = true;
    w.paths.push_back(p);
  }
  if (random.chance(15)) {
    for (std::uint64_t i = random.below(4); i > 0; --i) {
      w.changes.push_back({.at = random.between(0, 2000),
                           .path = static_cast<std::uint32_t>(random.below(w.paths.size())),
                           .present = random.chance(50)});
    }
  }
  if (random.chance(10)) w.program_deadline = random.between(20, 3000);
  if (random.chance(30)) w.syn_retries = 1 + static_cast<int>(random.below(6));
  if (random.chance(25)) w.named = static_cast<unsigned>(random.below(w.paths.size()));
  add_srv(random, w);
  return w;
}

std::uint32_t priority_of(const world& w, const path& p) {
  if (w.targets.empty()) return p.group;
  return p.target < w.targets.size() ? w.targets[p.target].priority : last_priority;
}

std::string target_name(std::size_t target) { return "t" + std::to_string(target) + ".test"; }

std::uint16_t port_of(const world& w, std::uint32_t target) {
  constexpr std::uint16_t named_by_program = 443;
  constexpr std::uint32_t of_first_target = 5222;
  return target < w.targets.size() ? static_cast<std::uint16_t>(of_first_target + target)
                                   : named_by_program;
}

endpoint endpoint_of(const world& w, const path& p) { return {p.where, port_of(w, p.target)}; }

std::string describe(const world& w) {
  std::ostringstream out;
  out << "  delay " << ms(w.timing.attempt_delay) << " ms, minimum " << ms(w.timing.minimum_delay)
      << ", maximum " << ms(w.timing.maximum_delay) << ", profile "
      << static_cast<int>(w.timing.profile) << ", preferred family count "
      << w.timing.preferred_family_count << ", program's deadline " << ms(w.program_deadline)
      << ", named " << w.named << ", SYN retries " << w.syn_retries << "\n  AAAA "
      << to_text(w.aaaa.reply) << " after " << ms(w.aaaa.after) << " ms, A " << to_text(w.a.reply)
      << " after " << ms(w.a.after) << " ms";
  if (w.asks_for_service)
    out << ", HTTPS " << to_text(w.service.reply) << " after " << ms(w.service.after) << " ms";
  out << "\n";
  if (!w.targets.empty()) {
    out << "  SRV " << (w.srv_refuses ? "refuses" : to_text(w.srv.reply)) << " after "
        << ms(w.srv.after) << " ms, patience " << ms(w.timing.group_patience) << " ms\n";
  }
  for (std::size_t i = 0; i < w.targets.size(); ++i) {
    const srv_target& t = w.targets[i];
    out << "  " << target_name(i) << ": priority " << t.priority << ", weight " << t.weight
        << ", AAAA " << to_text(t.aaaa.reply) << " after " << ms(t.aaaa.after) << " ms, A "
        << to_text(t.a.reply) << " after " << ms(t.a.after) << " ms\n";
  }
  for (const path& p : w.paths) {
    out << "  " << happy::to_text(p.where).chars << ": " << to_text(p.reply) << ", rtt "
        << ms(p.rtt) << " ms, remembered " << ms(p.remembered) << (p.lately ? " (lately)" : "")
        << ", loss " << p.loss_percent << " %, "
        << (w.targets.empty()             ? "group " + std::to_string(p.group)
            : p.target < w.targets.size() ? "of " + target_name(p.target)
                                          : "of the name itself")
        << (p.routed ? "" : ", no route") << (p.in_reserve ? ", in reserve" : "");
    if (p.dark_until > p.dark_from)
      out << ", dark " << ms(p.dark_from) << " to " << ms(p.dark_until);
    out << "\n";
  }
  for (const list_change& c : w.changes) {
    out << "  at " << ms(c.at) << " ms " << happy::to_text(w.paths[c.path].where).chars
        << (c.present ? " comes back" : " leaves the list") << "\n";
  }
  return out.str();
}

std::vector<world> simpler(const world& w) {
  std::vector<world> all;
  const auto with = [&](auto&& change) {
    world copy = w;
    change(copy);
    all.push_back(std::move(copy));
  };
  for (std::size_t i = 0; i < w.changes.size(); ++i) {
    with([&](world& c) { c.changes.erase(c.changes.begin() + static_cast<std::ptrdiff_t>(i)); });
  }
  for (std::size_t i = 0; w.changes.empty() && w.paths.size() > 1 && i < w.paths.size(); ++i) {
    with([&](world& c) {
      c.paths.erase(c.paths.begin() + static_cast<std::ptrdiff_t>(i));
      c.named %= static_cast<unsigned>(c.paths.size());
    });
  }
  for (std::size_t i = 0; i < w.paths.size(); ++i) {
    const path& p = w.paths[i];
    if (p.loss_percent != 0) with([&](world& c) { c.paths[i].loss_percent = 0; });
    if (p.dark_until != p.dark_from)
      with([&](world& c) { c.paths[i].dark_until = c.paths[i].dark_from = {}; });
    if (p.remembered != duration(0)) with([&](world& c) { c.paths[i].remembered = {}; });
    if (p.lately) with([&](world& c) { c.paths[i].lately = false; });
    if (p.group != 0) with([&](world& c) { c.paths[i].group = 0; });
    if (p.reply != answers_with::syn_ack)
      with([&](world& c) { c.paths[i].reply = answers_with::syn_ack; });
    if (!p.routed) with([&](world& c) { c.paths[i].routed = true; });
    if (p.rtt != milliseconds(10)) with([&](world& c) { c.paths[i].rtt = milliseconds(10); });
  }
  constexpr duration soon = milliseconds(1);
  if (!w.targets.empty()) {
    with([&](world& c) { c.targets.clear(); });
    if (w.srv.after != soon) with([&](world& c) { c.srv.after = soon; });
  }
  for (std::size_t i = 0; i < w.targets.size(); ++i) {
    const srv_target& t = w.targets[i];
    if (t.weight != 0) with([&](world& c) { c.targets[i].weight = 0; });
    if (t.aaaa.reply != dns_reply::positive || t.aaaa.after != soon)
      with([&](world& c) { c.targets[i].aaaa = {.after = soon}; });
    if (t.a.reply != dns_reply::positive || t.a.after != soon)
      with([&](world& c) { c.targets[i].a = {.after = soon}; });
  }
  if (w.aaaa.reply != dns_reply::positive || w.aaaa.after != soon)
    with([&](world& c) { c.aaaa = {.after = soon}; });
  if (w.a.reply != dns_reply::positive || w.a.after != soon)
    with([&](world& c) { c.a = {.after = soon}; });
  if (w.asks_for_service) with([&](world& c) { c.asks_for_service = false; });
  if (w.program_deadline != duration(0)) with([&](world& c) { c.program_deadline = {}; });
  if (w.named != 0) with([&](world& c) { c.named = 0; });
  if (w.timing.profile != timing_profile::standard)
    with([&](world& c) { c.timing.profile = timing_profile::standard; });
  if (w.timing.preferred_family_count != 1)
    with([&](world& c) { c.timing.preferred_family_count = 1; });
  const race_timing usual;
  if (w.timing.attempt_delay != usual.attempt_delay)
    with([&](world& c) { c.timing.attempt_delay = usual.attempt_delay; });
  if (w.timing.minimum_delay != usual.minimum_delay)
    with([&](world& c) { c.timing.minimum_delay = usual.minimum_delay; });
  if (w.timing.maximum_delay != usual.maximum_delay)
    with([&](world& c) { c.timing.maximum_delay = usual.maximum_delay; });
  return all;
}

}  // namespace happy::sim
