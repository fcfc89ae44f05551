// One lookup of one name: the resolution state machine with real queries under it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "resolver/dns_client.h"
#include "resolver/resolution.h"
#include "resolver/system_files.h"

namespace happy {

// A UDP and a TCP socket per nameserver and query, for both families.
inline constexpr std::size_t max_lookup_fds = 2 * max_query_fds;

// Once one family has answered, the nameserver lives: a silent query of the other one is sent again after
// these times, long before the resolver's own retry (5 s), because a late answer is of use for 5 s only.
inline constexpr duration resend_after[] = {milliseconds(300), milliseconds(1000),
                                            milliseconds(2500)};

// The thread that asks drives it with turn(); what is still open then can be serviced by any thread
// that holds it alone. Destroying it closes its sockets.
class lookup {
 public:
  // `id` names the lookup in the trace and in the table of intents.
  lookup(std::uint64_t id, const name_plan& plan, const resolution::settings& s);

  // Sends what is to be sent and takes in what has arrived. Why the resolution moves on, or nullopt:
  // poll for poll_set() until wait_until().
  std::optional<move_on> turn(time_point now);

  // Takes in what has arrived, without blocking, when the program's call is over or there was none: the
  // sockets leave the program's way. True if an answer came.
  bool service(time_point now);

  bounded_vector<pollfd, max_lookup_fds> poll_set() const;
  // Closes its sockets: nothing more is wanted of it. Does not free memory.
  void drop();
  bool dropped() const { return dropped_; }

  // When turn() has something to do although nothing arrived.
  time_point wait_until(time_point now);
  // When the queries alone have: for what is left of a lookup that has moved on.
  time_point deadline(time_point now) const;

  const resolution& state() const { return resolution_; }
  void want_all() { resolution_.want_all(); }
  std::uint64_t id() const { return id_; }

 private:
  // One record type: the query and its repetitions, all of them listening.
  struct asked {
    std::vector<dns_query> queries;
    time_point sent = never;
  };

  asked& of(record_type type) { return asked_[type == record_type::aaaa ? 0 : 1]; }
  const asked& of(record_type type) const { return asked_[type == record_type::aaaa ? 0 : 1]; }
  bool take_in(time_point now);
  void hide();
  void send(record_type type, time_point now);
  bool absorb(time_point now);
  bool absorb(record_type type, time_point now);
  void resend_if_due(time_point now);
  time_point next_resend(record_type type) const;

  std::uint64_t id_;
  name_plan plan_;
  std::uint64_t generation_;  // of all that the answers remembered hang on
  resolution resolution_;
  std::array<asked, 2> asked_;
  bool hidden_ = false;
  bool dropped_ = false;
};

// When glibc gives up on nameservers that stay silent: its own sum of time-outs.
duration glibc_patience(const resolver_config& config);

}  // namespace happy
