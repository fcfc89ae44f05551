// The name of a simulated connection: the real resolution over the world's DNS, and what is known from it.
#pragma once

#include <vector>

#include "racer/plan.h"
#include "resolver/resolution.h"
#include "tests/sim/world.h"

namespace happy::sim {

// SRV: whether the heaviest target of the best priority was drawn first, and what its chance is by RFC 2782.
struct srv_draw {
  double chance = 0;  // 0: there was no choice
  bool heaviest_first = false;
};

class name_lookup {
 public:
  explicit name_lookup(const world& w);

  resolution& state() { return state_; }
  const resolution& state() const { return state_; }

  const query_fate& fate_of(std::size_t query) const;

  // The answer to this query arrives. True: with addresses.
  bool take_answer(std::size_t query, time_point now);

  void set_listed(std::size_t path, bool listed) { unlisted_[path] = !listed; }
  void open_last_resort() { last_resort_open_ = true; }

  // What is known of the name now, in the order of preference.
  std::vector<listed_endpoint> list() const;

  srv_draw draw() const;

 private:
  std::size_t target_of(std::size_t query) const;
  std::vector<address> addresses_of(std::size_t target, family f) const;
  std::vector<service_record> srv_records() const;
  candidate reached_by(const path& p, candidate c) const;
  std::size_t index_of(const address& where) const;

  const world& world_;
  resolution state_;
  bool last_resort_open_ = false;
  std::vector<bool> unlisted_;
};

// What glibc would wait for silent nameservers.
inline constexpr duration resolver_patience = std::chrono::seconds(10);
inline constexpr duration resolver_round = std::chrono::seconds(5);  // it asks twice

}  // namespace happy::sim
