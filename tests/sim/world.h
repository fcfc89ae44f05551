// What a simulated connection meets: endpoints and the network before each, the DNS, the settings.
// A value: everything random in it, and in the run over it, follows from `seed`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "racer/timing.h"
#include "resolver/address_order.h"

namespace happy::sim {

// The same numbers on every machine.
class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  bool chance(unsigned percent) { return below(100) < percent; }
  duration between(int low_ms, int high_ms);

 private:
  std::uint64_t state_;
};

// What a SYN that gets through meets.
enum class answers_with : std::uint8_t { syn_ack, reset, soft_error, hard_error, nothing };

struct path {
  address where;
  std::uint32_t group =
      0;  // of its service record, in sorted order; of no account where there are SRV targets
  std::uint32_t target = 0;  // which of those has it; past the last one: the name itself
  answers_with reply = answers_with::syn_ack;
  bool routed = true;       // false: connect() says so at once
  bool in_reserve = false;  // no answer names it: the last resort finds it
  duration rtt{};
  duration remembered{};      // what the history says of its handshake; 0: nothing
  bool lately = false;        // and that is recent
  unsigned loss_percent = 0;  // of each packet
  // Nothing gets through from then until then.
  duration dark_from{};
  duration dark_until{};
};

enum class dns_reply : std::uint8_t { positive, no_data, name_error, server_failure, silent };

struct query_fate {
  dns_reply reply = dns_reply::positive;
  duration after{};
  bool repeated = false;  // the answer comes twice
};

// An answer that changes while the race runs: an endpoint leaves the list, or comes back.
struct list_change {
  duration at{};
  std::uint32_t path = 0;
  bool present = false;
};

// A target of the name's SRV records, by the name of target_name().
struct srv_target {
  std::uint16_t priority = 0;
  std::uint16_t weight = 0;
  query_fate aaaa;
  query_fate a;
};

struct world {
  std::uint64_t seed = 0;
  std::vector<path> paths;
  // Not empty: the name's SRV records are asked for first.
  std::vector<srv_target> targets;
  query_fate srv;
  bool srv_refuses = false;  // a record says that there is no such service
  query_fate aaaa;
  query_fate a;
  bool asks_for_service = false;
  query_fate service;  // never positive: only when it comes matters here
  std::vector<list_change> changes;
  race_timing timing;
  duration program_deadline{};  // SO_SNDTIMEO; 0: none
  int syn_retries = 6;
  bool waits_for_all = false;  // the lookup, as libc's
  unsigned named = 0;          // which of the addresses that the lookup gave the program names
};

// At most so many endpoints of one family: what large names have.
inline constexpr std::uint64_t most_endpoints = 10;

// The part of the group of a path: the priority of its target, or past all of them.
inline constexpr std::uint32_t last_priority = 0x10000;
std::uint32_t priority_of(const world& w, const path& p);

inline constexpr const char* domain = "name.test";
std::string target_name(std::size_t target);

// Where a path ends: at the port of its target's record, or at the program's.
std::uint16_t port_of(const world& w, std::uint32_t target);
endpoint endpoint_of(const world& w, const path& p);

world make_world(std::uint64_t seed);
std::string describe(const world& w);

// The worlds that are one step simpler; shrinking takes the first that still fails.
std::vector<world> simpler(const world& w);

}  // namespace happy::sim
