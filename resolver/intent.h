// What a program meant: the lookups it made, found again by address when it connects.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "resolver/address_order.h"
#include "resolver/endpoints.h"
#include "resolver/name_plan.h"
#include "resolver/prefix_discovery.h"
#include "shim/base/bounded_vector.h"
#include "shim/base/endpoint.h"
#include "shim/base/time.h"

namespace happy {

// Lookups remembered at once; the oldest is forgotten first. A program that looks up more names than
// this before it connects to the first of them gets plain connects for those.
inline constexpr std::size_t max_intents = 128;

// How long an address is known to belong to a name. As long as a positive answer would be cached.
inline constexpr duration intent_lifetime = std::chrono::seconds(60);

// How long after the lookup a late answer to it still joins a race (contract: only endpoints of the
// lookup that the program made).
inline constexpr duration late_answer_lifetime = std::chrono::seconds(5);

// After a race has failed, the error of an address is served once to the thread that ran it, so that
// a program walking its list does not take the time of the race again for each address.
inline constexpr duration failure_lifetime = std::chrono::seconds(1);

struct failure {
  endpoint where;
  int error = 0;
};

struct intent {
  std::uint64_t id = 0;  // of the lookup
  std::string name;
  std::string
      full_name;  // with the domain of the search list that it was found with; empty: `name`
  pid_t thread = 0;
  time_point made{};
  bool ipv4 = true;  // families the program asked for
  bool ipv6 = true;
  bool as_mapped = false;    // IPv4 addresses are ::ffff:a.b.c.d to the program
  bool partial = false;      // the program got its list before every answer was there,
  bool outgrown = false;     // and the rest has brought addresses that are not in it
  bool unconfirmed = false;  // a hint: answers count only once they contain the first candidate
  // In the order of SORT-1: at any port, and at `service_port` if there is anything.
  std::vector<candidate> candidates;
  std::vector<candidate> service_candidates;
  bool by_srv = false;  // the candidates are targets of SRV records, for `service_port` alone
  // The program goes through the targets of an SRV answer itself, and this is the next one.
  bool follows_srv = false;
  std::vector<address> handed;     // to the program, which may name them although they are outdated
  std::uint16_t service_port = 0;  // the port that the service records are for
  bool service_unknown = false;    // the program named no service: connect() tells the port
  std::uint16_t seen_port = 0;     // which it did
  bool keep_hints = false;
  prefix_list nat64{};  // the prefixes in force at the lookup, on a network without IPv4
  // V6ONLY-8: how to ask for the A records of a name of which only AAAA were asked for, although the program
  // would take IPv4; nullptr: no need.
  std::shared_ptr<const name_plan> last_resort;
  // The failed race's errors: served to `failed_thread`, until `failures_until`. Their room is made with
  // the candidates: a race may be lost where nothing can be allocated.
  std::vector<failure> failures;
  pid_t failed_thread = 0;
  time_point failures_until{};

  void reserve_failures() {
    failures.reserve(std::max(candidates.size(), service_candidates.size()));
  }

  // The port that a connect() to `named` is meant for: that of the service where a record of SRV names the endpoint.
  std::uint16_t port_meant_by(const endpoint& named) const;

  // What is raced by a connect() that is meant for `port`.
  const std::vector<candidate>& candidates_at(std::uint16_t port) const {
    static const std::vector<candidate> none;
    if (by_srv && port != service_port) return none;
    return port == service_port && !service_candidates.empty() ? service_candidates : candidates;
  }
};

// What connect() can know of the address it was given.
struct known_destination {
  std::uint16_t port = 0;  // that the connect() is meant for
  bool by_srv = false;     // the address is meant at the port of its candidate
  bool as_mapped = false;
  std::uint64_t id =
      0;  // the lookup whose late answers may join; 0: several lookups share the address
  bounded_vector<candidate, max_candidates> candidates;
};

// Not for two threads at once: the engine's lock is around it.
class intent_table {
 public:
  void add(intent made);

  // The endpoints that the program meant by `named`: those of the latest lookup of `thread` that holds
  // its address; if only other threads' lookups do, what they have in common. False if no lookup holds it.
  bool find(const endpoint& named, pid_t thread, time_point now, known_destination& out) const;

  // Where the program connected to when it last named no service for this name; 0: not known.
  std::uint16_t seen_port(const char* name) const;

  // nullptr once forgotten.
  intent* by_id(std::uint64_t id);

  // Records the errors of a failed race for the thread that ran it; the caller is told that of `told` by
  // itself. Does not allocate.
  void record_failures(intent& raced, std::span<const failure> all, const endpoint& told,
                       pid_t thread, time_point now);

  // The recorded error of a failed race, once: 0 if there is none for this endpoint and thread.
  int take_failure(const endpoint& where, pid_t thread, time_point now);

  void clear() { intents_.clear(); }

  // A new lookup of this thread makes all its recorded failures void, unless it only goes on with the
  // targets of an SRV answer, some of which have been raced.
  void forget_failures(pid_t thread);

 private:
  std::deque<intent> intents_;  // oldest first
  bool any_failures_ = false;   // false: none of them has any
};

}  // namespace happy
