// Which nameservers have lately been silent while others answered.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/base/endpoint.h"
#include "shim/base/time.h"

namespace happy {

// A silent one is asked after all others for this long; then a lookup finds out anew, for overtake_after.
inline constexpr duration nameserver_penalty = std::chrono::seconds(60);

// More nameservers than resolv.conf gives (16), each with and without EDNS; two that share a row only
// forget each other.
inline constexpr std::size_t health_rows = 64;

// Takes the time, and no lock: a fork in the middle of anything leaves every row whole, and a row lost to a
// race costs one wait.
//
// Context:  any thread.
// Spec:     hev3 Multiple DNS Servers
class nameserver_health {
 public:
  // Of the nameserver, and of asking it in this way: a firewall may drop queries with EDNS alone.
  static std::uint64_t key_of(const address& nameserver, bool edns);

  void answered(std::uint64_t key, time_point now);

  // It was asked at `asked` and said nothing, but another did. Nothing it has answered since counts.
  void overtaken(std::uint64_t key, time_point asked, time_point now);

  bool is_penalised(std::uint64_t key, time_point now) const;

  void clear();

 private:
  struct row {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::int64_t> answered_ns{0};
    std::atomic<std::int64_t> penalised_until_ns{0};
  };

  row& claim(std::uint64_t key);

  row rows_[health_rows];
};

// The process's.
nameserver_health& known_health();

}  // namespace happy
