// What the kernel has said a moment ago of sources and of this host's addresses: a burst of lookups asks it once.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "resolver/address_order.h"
#include "resolver/own_addresses.h"
#include "resolver/source_address.h"
#include "shim/base/bounded_vector.h"
#include "shim/base/time.h"

namespace happy {

// Less than it takes a host to change networks. What hangs on it is an order; a record that is remembered hangs on
// `preference_lifetime`.
inline constexpr duration source_lifetime = milliseconds(100);

// Those of a few names. Whoever looks up more at a time asks the kernel again.
inline constexpr std::size_t max_known_sources = 64;

using own_address_list = std::shared_ptr<const std::vector<own_address>>;

// All of it ends `source_lifetime` after the first that was kept.
class source_memory {
 public:
  std::optional<address> find(const address& destination, time_point now);
  void keep(const address& destination, const address& source, time_point now);

  // Null: not known.
  own_address_list own_addresses(time_point now);
  void keep_own_addresses(own_address_list list, time_point now);

  void clear();

 private:
  struct entry {
    address destination;
    address source;
  };

  void meet(time_point now);

  time_point since_ = never;
  bounded_vector<entry, max_known_sources> sources_;
  own_address_list own_;
};

// A source_probe, to port 0, that does not ask what is known.
//
// Context:  any thread; does not block; at most two descriptors, until it ends.
class source_finder {
 public:
  explicit source_finder(kernel_said said) : said_(said) {}
  void find(candidate& c);

 private:
  kernel_said said_;
  source_probe probe_;
};

// What note_own_addresses() was given a moment ago; null: the kernel is to be asked.
own_address_list recent_own_addresses();
void note_own_addresses(own_address_list list);

// The process has changed networks.
//
// Context:  any thread, signal-safe.
void forget_sources() noexcept;

}  // namespace happy
