// Bridging: addresses of a pool that stand for names without any IPv4 address, for programs that can take no
// other. Takes no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "resolver/address_order.h"
#include "shim/base/endpoint.h"

namespace happy {

// Names that a process keeps addresses for; the oldest is forgotten first.
inline constexpr std::size_t max_bridged_names = 1024;

// HAPPY_BRIDGE, in the order of its words.
enum class bridging : std::uint8_t { ipv6_only, everywhere, nowhere };

// What a pool address stands for.
struct bridged_name {
  address ipv4;
  std::string name;
  std::vector<candidate> candidates;  // IPv6, in their order
};

// Not for two threads at once: the engine's lock is around it.
class bridge_table {
 public:
  // The pool is `first_octet`.0.0.0/8.
  explicit bridge_table(std::uint8_t first_octet) : first_octet_(first_octet) {}

  // Hangs on the name alone, in any case of letters, so that no two processes that exchange addresses (a
  // forked child that resolves for its parent) mean two names by one.
  address address_for(std::string_view name) const;

  // From now on the name's address leads to `candidates`. False: it stands for another name.
  bool add(std::string_view name, std::vector<candidate> candidates);

  bool is_in_pool(const address& ipv4) const {
    return ipv4.family == family::ipv4 && ipv4.bytes[0] == first_octet_;
  }

  // nullptr: this process was not handed the address.
  const bridged_name* find(const address& ipv4) const;

  // A name one of whose endpoints that is, or nullptr.
  const bridged_name* find_by_endpoint(const address& ipv6) const;

 private:
  std::uint8_t first_octet_;
  std::deque<bridged_name> names_;  // oldest first
};

}  // namespace happy
