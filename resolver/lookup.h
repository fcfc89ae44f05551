// One lookup of one name: the resolution state machine with real queries under it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "resolver/dns_client.h"
#include "resolver/resolution.h"
#include "resolver/system_files.h"

namespace happy {

// A UDP and a TCP socket per nameserver for four queries; no resolver configuration comes near. Sockets
// beyond are looked at only when the others give an occasion.
inline constexpr std::size_t max_lookup_fds = 4 * max_query_fds;

// Once any query has been answered, a nameserver lives: from then on a silent one is sent again after
// these times, long before the resolver's own retry (5 s), because a late answer is of use for 5 s only.
inline constexpr duration resend_after[] = {milliseconds(300), milliseconds(1000),
                                            milliseconds(2500)};

// ATTEMPT-3: how long answers are taken in after success.
inline constexpr duration answers_after_success = std::chrono::seconds(1);

// The thread that asks drives it with turn(); what is still open then can be serviced by any thread
// that holds it alone. Destroying it closes its sockets.
class lookup {
 public:
  // `id` names the lookup in the trace and in the table of intents.
  lookup(std::uint64_t id, const name_plan& plan, const resolution::settings& s);

  // Sends what is to be sent and takes in what has arrived. Why the resolution moves on, or nullopt:
  // poll for poll_set() until wait_until().
  std::optional<move_on> turn(time_point now);

  // Takes in what has arrived, and sends what follows from it, without blocking, when the program's call is
  // over or there was none: the sockets leave the program's way. True if an answer came.
  bool service(time_point now);

  bounded_vector<pollfd, max_lookup_fds> poll_set() const;
  // Closes its sockets: nothing more is wanted of it. Does not free memory.
  void drop();
  bool dropped() const { return dropped_; }

  // When turn() has something to do although nothing arrived.
  time_point wait_until(time_point now);
  // When the queries have, and those that follow them: for what is left of a lookup that has moved on.
  time_point deadline(time_point now) const;

  // A connection has come of it: nobody waits for it any more, but for a while its answers are still taken in
  // (ATTEMPT-3). The first one counts.
  void succeed(time_point now) { closes_ = std::min(closes_, now + answers_after_success); }
  bool has_succeeded() const { return closes_ != never; }
  bool is_closed(time_point now) const { return now >= closes_; }

  // V6ONLY-8: it was begun in the end; what it finds joins what is known of the name, until then.
  void make_last_resort(time_point until) { last_resort_until_ = until; }
  bool is_last_resort() const { return last_resort_until_ != never; }
  time_point last_resort_until() const { return last_resort_until_; }

  const resolution& state() const { return resolution_; }
  void want_all() { resolution_.want_all(); }
  std::uint64_t id() const { return id_; }

 private:
  // A query of the state machine and its repetitions, all of them listening.
  struct asked {
    std::vector<dns_query> queries;
    time_point sent = never;
  };

  bool take_in(time_point now);
  void hide();
  bool send(std::size_t number, time_point now);  // true: it was answered at once
  bool absorb(time_point now);
  bool absorb(std::size_t number, time_point now);
  void resend_if_due(time_point now);
  time_point next_resend(const asked& a) const;

  std::uint64_t id_;
  name_plan plan_;
  std::uint64_t generation_;  // of all that the answers remembered hang on
  resolution resolution_;
  std::vector<asked> asked_;        // by the state machine's numbers
  time_point lives_since_ = never;  // the first answer: a nameserver lives
  bool hidden_ = false;
  bool dropped_ = false;
  time_point last_resort_until_ = never;
  time_point closes_ = never;
};

// "service" events: what records say.
void trace_services(std::uint64_t id, const std::vector<service_record>& records);

// When glibc gives up on nameservers that stay silent: its own sum of time-outs.
duration glibc_patience(const resolver_config& config);

}  // namespace happy
