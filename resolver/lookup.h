// One lookup of one name: the resolution state machine with real queries under it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "resolver/dns_client.h"
#include "resolver/resolution.h"
#include "resolver/system_files.h"

namespace happy {

// A UDP and a TCP socket per nameserver and query, for both families.
inline constexpr std::size_t max_lookup_fds = 2 * max_query_fds;

// The thread that asks drives it with run(); what is still open then can be serviced by any thread
// that holds it alone. Destroying it closes its sockets.
class lookup {
 public:
  // `id` names the lookup in the trace and in the table of intents.
  lookup(std::uint64_t id, const name_plan& plan, const resolution::settings& s);

  // Sends the queries and waits until the resolution moves on.
  //
  // Context:  blocks, at most until the deadline of the settings; reads the clock.
  move_on run();

  // Takes in what has arrived, without blocking. True if an answer came.
  bool service(time_point now);

  // For a loop that polls for many: what to wait for, and until when.
  bounded_vector<pollfd, max_lookup_fds> poll_set() const;
  time_point deadline(time_point now) const;

  const resolution& state() const { return resolution_; }
  std::uint64_t id() const { return id_; }

 private:
  std::optional<dns_query>& of(record_type type) { return queries_[type == record_type::aaaa ? 0 : 1]; }
  void send(record_type type, time_point now);
  bool absorb(time_point now);

  std::uint64_t id_;
  name_plan plan_;
  resolution resolution_;
  std::array<std::optional<dns_query>, 2> queries_;
};

// When glibc gives up on nameservers that stay silent: its own sum of time-outs.
duration glibc_patience(const resolver_config& config);

}  // namespace happy
