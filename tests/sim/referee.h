// What must hold in every simulated connection, worked out from the world alone and in other words than the
// product has.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "racer/race.h"
#include "resolver/resolution.h"
#include "tests/sim/network.h"
#include "tests/sim/world.h"

namespace happy::sim {

class referee {
 public:
  // `floor`: what is demanded between two attempts.
  referee(const world& w, duration floor) : world_(w), demanded_floor_(floor) {}

  // The lookup: a query is sent, an address is there, the program goes on because of `reason`.
  void queried(const resolution& r, std::size_t query, time_point now);
  void has_address(time_point now);
  void looked_up(const resolution& r, move_on reason, time_point now);

  // The race begins, and this is what is known of the name, in the order of preference.
  void began(const endpoint& named, time_point now);
  void listed(const std::vector<listed_endpoint>& sorted, const resolution& r, bool complete,
              time_point now);

  // An attempt starts, cannot be made at all, has an outcome.
  void started(const endpoint& where, time_point now);
  void unreachable();
  void heard(std::size_t path, fate how);

  void asked_last_resort(time_point now);
  void waits_for_events(const race& machine, time_point now);
  void decided(bool won, const endpoint& winner, time_point now);

  // The program has what it gets. `left`: it gave up.
  void ended(bool won, bool left, time_point now);

  void fail(const char* what, time_point now);

  bool is_content() const { return violation_.empty(); }
  const std::string& violation() const { return violation_; }

 private:
  std::vector<endpoint> plan_of(const std::vector<listed_endpoint>& sorted) const;
  void check_weights(const std::vector<listed_endpoint>& sorted, const resolution& r,
                     time_point now);
  void check_srv_lookup(const resolution& r, move_on reason, time_point now);
  void check_spacing(const endpoint& where, time_point now);
  void check_promptness(bool won, time_point now);

  bool is_given_up(std::uint32_t priority, time_point now) const;
  duration bare_lookup() const;
  void check_last_chance(const resolution& r, time_point now);
  std::uint32_t priority_of_name(const std::string& name) const;
  const path& path_of(const endpoint& where) const;
  bool is_started(const endpoint& where) const;
  const endpoint* first_unstarted() const;
  bool has_reserve() const;
  std::size_t in_flight() const;
  duration delay_after_last() const;
  time_point turn_of(const path& p) const;
  bool may_come_sooner(time_point now) const;

  struct attempt {
    endpoint where;
    const path* by = nullptr;
    time_point at{};
    bool open = false;
    bool connected = false;
  };

  const world& world_;
  duration demanded_floor_;
  std::string violation_;
  time_point first_positive_ = never;
  time_point last_query_ = time_point::min();
  std::map<std::uint32_t, time_point> asked_at_;  // of SRV, by priority
  time_point began_ = never;
  endpoint named_;
  std::vector<endpoint> expected_;  // the plan
  bool complete_ = false;
  bool last_resort_open_ = false;
  bool decided_ = false;
  time_point list_changed_{};
  std::vector<attempt> attempts_;  // in the order of their start
  time_point floor_ = time_point::min();
  bool hurried_ = false;  // a failure or trouble since the last start
};

}  // namespace happy::sim
