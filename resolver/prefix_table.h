// Which NAT64 prefixes are in force, from all sources, with their lifetimes. Takes no clock.
#pragma once

#include <cstdint>

#include "resolver/prefix_discovery.h"
#include "shim/base/time.h"

namespace happy {

// Who says so, and to whom: two routers on one link, or two links, speak for themselves.
struct advertiser {
  std::uint32_t interface = 0;
  address router{.family = family::ipv6};

  friend constexpr bool operator==(const advertiser&, const advertiser&) = default;
};

// What routers advertise. Several prefixes of several routers on several links; a hostile link can fill
// the table, but then with what it could advertise anyhow.
inline constexpr std::size_t max_advertised = 32;

// Spec:     RFC 8781 s5; V6ONLY-3
class prefix_table {
 public:
  // Lifetime 0 withdraws what this router advertised of the prefix. With a full table a new prefix takes
  // the place of the one that would have expired first.
  void advertise(const advertiser& who, const nat64_prefix& prefix, duration lifetime,
                 time_point now);

  // What was advertised on a link that is down or gone holds no more.
  void lose_link(std::uint32_t interface);

  // What RFC 7050 found, instead of what it found before; empty: nothing, remembered as well.
  void discover(const prefix_list& found, time_point until);

  // V6ONLY-3, V6ONLY-5: those of router advertisements, the latest first, and only where there are none
  // those that DNS has told.
  prefix_list current(time_point now) const;

  bool any_advertised(time_point now) const;
  // Whether a discovery is remembered, of whatever outcome.
  bool is_discovered(time_point now) const { return now < discovered_until_; }

  void clear_advertised() { advertised_.clear(); }
  void clear();

 private:
  struct entry {
    advertiser who;
    nat64_prefix prefix;
    time_point expires;
  };

  bounded_vector<entry, max_advertised> advertised_;  // oldest news first
  prefix_list discovered_;
  time_point discovered_until_ = time_point::min();
};

}  // namespace happy
