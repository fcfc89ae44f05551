#include "tests/sim/cost.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "racer/plan.h"
#include "racer/race.h"
#include "resolver/address_order.h"
#include "tests/sim/world.h"

namespace happy::sim {
namespace {

std::vector<candidate> make_candidates(std::size_t count) {
  random_numbers random(count);
  std::vector<candidate> list;
  for (std::size_t i = 0; i < count; ++i) {
    candidate c;
    const bool six = i % 2 == 0;
    c.destination.family = six ? family::ipv6 : family::ipv4;
    if (six) c.destination.bytes = {0x20, 0x01, 0x0d, 0xb8};
    const std::uint64_t bits = random.next();
    std::memcpy(c.destination.bytes.data() + (six ? 8 : 0), &bits, six ? 8 : 4);
    c.source = c.destination;
    c.source.bytes[3] ^= 1;
    c.has_source = true;
    list.push_back(c);
  }
  return list;
}

// Every endpoint attempted and refused.
void run_race(const std::vector<candidate>& sorted) {
  endpoint_list listed;
  for (const candidate& c : sorted) listed.push_back({.where = {c.destination, 443}});
  race machine{race_timing{}};
  time_point now{};
  machine.set_plan(plan({listed.begin(), listed.size()}, listed[0].where, 1), true, now);
  for (race_action next = machine.poll(now); next.what != race_action::kind::lost;
       next = machine.poll(now)) {
    if (next.what == race_action::kind::wait) now = next.until;
    if (next.what == race_action::kind::attempt)
      machine.handle({.what = race_event::kind::failed, .where = next.where},
                     now + milliseconds(5));
  }
}

}  // namespace

double cost_us(std::size_t endpoints) {
  constexpr int times = 501;
  const std::vector<candidate> unsorted = make_candidates(endpoints);
  std::vector<double> took;
  for (int i = 0; i < times; ++i) {
    std::vector<candidate> list = unsorted;
    const auto began = std::chrono::steady_clock::now();
    sort_by_preference(list);
    run_race(list);
    took.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began)
            .count());
  }
  std::nth_element(took.begin(), took.begin() + times / 2, took.end());
  return took[times / 2];
}

void print_costs() {
  for (const std::size_t endpoints : {2, 20, 96, 200, 1000})
    std::printf("%zu %.1f\n", endpoints, cost_us(endpoints));
}

}  // namespace happy::sim
