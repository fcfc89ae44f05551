// What this process knows of the network's NAT64, and how it finds out: configuration, then router
// advertisements, then DNS.
#pragma once

#include <cstdint>
#include <memory>

#include "resolver/lookup.h"
#include "resolver/pref64_file.h"
#include "resolver/pref64_listener.h"
#include "resolver/prefix_table.h"
#include "resolver/system_files.h"

namespace happy {

// A network without NAT64 is asked again after this time; one whose nameservers are silent, sooner.
inline constexpr duration no_prefix_lifetime = std::chrono::seconds(60);
inline constexpr duration silence_lifetime = std::chrono::seconds(10);

// Bounds for the TTL that comes with a discovered prefix.
inline constexpr duration least_prefix_lifetime = std::chrono::seconds(10);
inline constexpr duration most_prefix_lifetime = std::chrono::hours(1);

// How long one query for the prefix may go on, and how long a connect() waits for it: the first one
// that needs it, and less where the program's socket does not block.
inline constexpr duration discovery_patience = std::chrono::seconds(3);
inline constexpr duration blocking_patience = milliseconds(700);
inline constexpr duration non_blocking_patience = milliseconds(200);

// Not for two threads at once: the engine's lock is around it.
class nat64 {
 public:
  // `configured`: HAPPY_PREF64, prefixes by commas or "none"; nullptr: find out.
  explicit nat64(const char* configured);

  bool off() const { return off_; }

  // Those in force. Context: two stat() calls where routers are believed, two more calls while they are heard.
  prefix_list prefixes(time_point now);

  // Whether asking the DNS could bring one: nothing better is known, and no answer is remembered.
  bool may_discover(time_point now);

  // Asks, if nobody has yet. Does not wait.
  void begin_discovery(std::uint64_t id, const system_snapshot& files, time_point now);

  // Takes in what has come. True if no query is under way (any more).
  bool turn(time_point now);

  // The query under way, or nullptr.
  lookup* query() { return query_.get(); }

  // The query goes on beside the program: its sockets leave the program's way.
  void let_go(time_point now);
  // The same, and nobody waits for it a second time.
  void stop_waiting(time_point now);
  bool is_waited_for() const { return waited_for_; }

  // Whether this is a network on which it matters what routers say, as a lookup or a connect() has found.
  void note_ipv6_only(bool is) { ipv6_only_ = is; }

  // Hears routers from now on, where that matters, and takes in what they have said since the last time. For a
  // thread that lives on beside the program: nobody else would take it in before the kernel's queue is full.
  void listen(time_point now);
  void stop_listening() { listener_.close(); }

  // The IPv4 address behind a prefix in force, or nullopt.
  std::optional<address> ipv4_behind(const address& a, time_point now);

  // Everything found out is about another network.
  void forget();
  // Which network this is (connectivity.h): forgets what was found out on another one.
  void note_network(std::uint64_t fingerprint);
  // Frees nothing: fork() may have come in a signal handler.
  void close_sockets();

 private:
  void conclude(time_point now);
  void hear_routers(time_point now);

  bool off_ = false;
  prefix_list configured_;
  pref64_file advertised_;
  pref64_listener listener_;
  bool ipv6_only_ = false;
  prefix_table table_;
  std::unique_ptr<lookup> query_;
  bool waited_for_ = true;
  std::uint64_t network_ = 0;
};

}  // namespace happy
