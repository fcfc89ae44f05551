// sim [--seed N] [--runs N] [--jobs N] [--canary] [--study] [--cost]: simulated connections, each from a seed of its own.
//
// A violation is shrunk to the simplest world that still has it, and printed with the command that shows it
// again; the status is 1 then. --canary must end so. The last line counts connections.

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "tests/sim/cost.h"
#include "tests/sim/lives.h"
#include "tests/sim/run.h"
#include "tests/sim/study.h"

namespace {

using namespace happy::sim;

struct wishes {
  std::uint64_t seed = 1;
  std::uint64_t runs = 20'000;
  unsigned jobs = 2;
  bool canary = false;
  bool study = false;
  bool cost = false;
};

options options_for(const wishes& w) {
  options o;
  if (w.canary) o.demanded_floor = std::chrono::seconds(1);
  return o;
}

// Every 64th connection is run twice: the same seed has to give the same.
constexpr std::uint64_t repeat_every = 64;

// From every 64th seed several clients live with their histories: 400 connections more.
constexpr std::uint64_t live_every = 64;

std::string violation_of(const world& w, const options& o) {
  const outcome once = run(w, o);
  if (!once.violation.empty()) return once.violation;
  if (w.seed % repeat_every == 0 && run(w, o).fingerprint != once.fingerprint)
    return "the same seed gave another trace";
  return {};
}

world shrink(world w, const options& o) {
  constexpr int most_steps = 1000;
  for (int step = 0; step < most_steps; ++step) {
    bool found = false;
    for (const world& simple : simpler(w)) {
      if (violation_of(simple, o).empty()) continue;
      w = simple;
      found = true;
      break;
    }
    if (!found) break;
  }
  return w;
}

void report(const wishes& wished, std::uint64_t seed) {
  options o = options_for(wished);
  const world w = make_world(seed);
  std::printf("seed %llu: %s\n  again: make sim SEED=%llu RUNS=1%s\n",
              static_cast<unsigned long long>(seed), violation_of(w, o).c_str(),
              static_cast<unsigned long long>(seed), wished.canary ? " ARGS=--canary" : "");
  const world small = shrink(w, o);
  o.keep_trace = true;
  const outcome again = run(small, o);
  std::printf("the simplest world that shows it: %s\n%s%s", again.violation.c_str(),
              describe(small).c_str(), again.trace.c_str());
}

std::uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

bool parse(int argc, char** argv, wishes& w) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--canary") {
      w.canary = true;
    } else if (word == "--study") {
      w.study = true;
    } else if (word == "--cost") {
      w.cost = true;
    } else if (word == "--seed" && more) {
      w.seed = number(argv[++i]);
    } else if (word == "--runs" && more) {
      w.runs = number(argv[++i]);
    } else if (word == "--jobs" && more) {
      w.jobs = static_cast<unsigned>(number(argv[++i]));
    } else {
      return false;
    }
  }
  return w.jobs > 0;
}

}  // namespace

int main(int argc, char** argv) {
  wishes wished;
  if (!parse(argc, argv, wished)) {
    std::fputs("usage: sim [--seed N] [--runs N] [--jobs N] [--canary] [--study] [--cost]\n",
               stderr);
    return 2;
  }
  if (wished.cost) return print_costs(), 0;
  if (wished.study) return print_study(wished.seed, wished.runs), 0;
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> first{UINT64_MAX};
  std::atomic<std::uint64_t> done{0};
  const options o = options_for(wished);
  std::vector<std::thread> threads;
  for (unsigned job = 0; job < wished.jobs; ++job) {
    threads.emplace_back([&] {
      for (std::uint64_t i = done++; i < wished.runs; i = done++) {
        const std::uint64_t seed = wished.seed + i;
        if (const std::string wrong = seed % live_every == 0 ? live(seed) : ""; !wrong.empty()) {
          std::printf("lives of seed %llu: %s\n", static_cast<unsigned long long>(seed),
                      wrong.c_str());
          ++failed;
          continue;
        }
        if (violation_of(make_world(seed), o).empty()) continue;
        ++failed;
        std::uint64_t lowest = first;
        while (seed < lowest && !first.compare_exchange_weak(lowest, seed)) {
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  if (first != UINT64_MAX) report(wished, first);
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(wished.runs - failed),
              static_cast<unsigned long long>(failed.load()));
  return failed == 0 ? 0 : 1;
}
