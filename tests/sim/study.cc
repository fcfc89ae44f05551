#include "tests/sim/study.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "tests/sim/run.h"

namespace happy::sim {
namespace {

struct way {
  const char* name;
  race_timing timing;
  bool waits_for_all = false;  // the lookup is libc's
  bool history = false;
};

race_timing fixed(int ms) {
  const milliseconds d(ms);
  return {
      .attempt_delay = d, .minimum_delay = d, .maximum_delay = d, .profile = timing_profile::v2};
}

const way ways[] = {
    {"one after the other (plain libc loop)", fixed(1'000'000'000), true},
    {"fixed 250 ms (RFC 8305)", fixed(250)},
    {"libc's lookup, fixed 200 ms (curl)", fixed(200), true},
    {"libc's lookup, fixed 300 ms (Go)", fixed(300), true},
    {"libhappy standard, without history", {}},
    {"libhappy standard", {}, false, true},
    {"libhappy fast", {.profile = timing_profile::fast}, false, true},
    {"libhappy v2", {.profile = timing_profile::v2}, false, true},
};

struct figures {
  std::vector<double> ms;
  double extra_syns = 0;
  unsigned failed = 0;
};

double at(std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto index = static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1));
  return sorted[index];
}

void print(const char* name, figures& f, std::size_t count) {
  std::sort(f.ms.begin(), f.ms.end());
  std::printf("| %s | %.0f | %.0f | %.0f | %.2f | %.2f |\n", name, at(f.ms, 0.5), at(f.ms, 0.95),
              at(f.ms, 0.99), f.extra_syns / static_cast<double>(count),
              100.0 * f.failed / static_cast<double>(count));
}

// A late answer of the DNS, in the mix up to seven seconds, comes within half a second here, and none is lost: the
// study is about connecting.
void make_usual(query_fate& f) {
  constexpr duration usual = milliseconds(60);
  if (f.reply == dns_reply::silent) f.reply = dns_reply::no_data;
  if (f.after > usual) f.after = usual + (f.after - usual) / 20;
}

// The world that a study uses: only what a client could do something about.
world plain_world(std::uint64_t seed) {
  world w = make_world(seed);
  w.timing = {};
  w.changes.clear();
  w.targets.clear();
  w.program_deadline = {};
  w.named = 0;
  w.syn_retries = 6;
  w.asks_for_service = false;
  std::erase_if(w.paths, [](const path& p) { return p.in_reserve; });
  make_usual(w.aaaa);
  make_usual(w.a);
  for (path& p : w.paths) {
    // The variance of a path that has been used for a while (RFC 6298 s2.3).
    if (p.remembered != duration(0)) p.remembered = expected_handshake(p.rtt, p.rtt / 8);
  }
  return w;
}

}  // namespace

void print_study(std::uint64_t seed, std::uint64_t runs) {
  std::vector<world> worlds;
  figures best;
  for (std::uint64_t i = 0; i < runs; ++i) {
    world w = plain_world(seed + i);
    const duration d = best_possible(w);
    if (d < duration(0)) continue;  // nothing answers
    best.ms.push_back(static_cast<double>(d.count()) / 1e6);
    worlds.push_back(std::move(w));
  }
  std::puts("| way | median ms | p95 | p99 | extra SYNs | failed % |\n|---|---|---|---|---|---|");
  print("best possible (knows who answers first)", best, worlds.size());
  for (const way& by : ways) {
    figures f;
    for (world w : worlds) {
      w.timing = by.timing;
      w.waits_for_all = by.waits_for_all;
      if (!by.history) {
        for (path& p : w.paths) p.remembered = {}, p.lately = false;
      }
      const outcome o = run(w);
      if (!o.won) {
        ++f.failed;
        continue;
      }
      f.ms.push_back(static_cast<double>(o.took.count()) / 1e6);
      f.extra_syns += o.attempts > 0 ? o.attempts - 1.0 : 0;
    }
    print(by.name, f, worlds.size());
  }
}

}  // namespace happy::sim
