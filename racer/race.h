// The race as a state machine: which endpoint to attempt when, and who won.
// Takes no clock, socket, lock or thread; events and the time come in, actions go out.
#pragma once

#include <cstdint>

#include "racer/plan.h"
#include "racer/timing.h"

namespace happy {

// Attempts of one race that may be under way together. With 250 ms between two, the 32nd starts
// after 8 s; more would be load on the network rather than a chance. At the limit no further one
// starts until one has ended; none is ever ended to make room.
inline constexpr std::size_t max_attempts_in_flight = 32;

// What happened to an attempt.
struct race_event {
  enum class kind : std::uint8_t {
    connected,  // the handshake is complete; whether that is success, race_timing says
    succeeded,  // so is all that makes a connection ready to use
    failed,     // it has ended with an error
    troubled,   // a soft error (ICMP): it goes on, but hope is better placed elsewhere
  };
  kind what;
  endpoint where;
  bool reached_network = true;  // failed: false if no packet left this host (no route, no socket)
  duration until_success{0};    // connected: how long the rest is expected to take
};

// Why an attempt is started when it is.
enum class attempt_reason : std::uint8_t {
  first,         // nothing was attempted before
  delay_passed,  // the Connection Attempt Delay
  failure,       // another has failed, or is in trouble
  group_failed,  // XMPP-2: every attempt of the priority groups before has failed,
  group_silent,  // or their patience has passed
};

const char* to_text(attempt_reason reason);

struct race_action {
  enum class kind : std::uint8_t {
    attempt,  // start an attempt at `where`
    wait,     // nothing to do before `until` unless an event comes
    last_resort,  // find out what else there is, and say so by set_plan() before the next poll(); said once
    won,          // by `where`; every other attempt is to be ended
    lost,  // every attempt has failed and no endpoint is left or expected
  };
  kind what = kind::wait;
  endpoint where{};
  time_point until = never;
  attempt_reason why = attempt_reason::first;  // attempt
  bool in_turn = false;     // attempt: `where` belongs to a priority group of SRV,
  std::uint32_t group = 0;  // this one
};

// Spec:     hev3 Connection Attempts, hev3 Determining success, hev3 DNS Answer Changes, hev3 Hostnames with
//           Broken AAAA Records; ATTEMPT-1, 2, 4 to 7, SUCCESS-1, SUCCESS-3, CHANGE-1, 2, 4, V6ONLY-8; XEP-0495 s4.1: XMPP-2
class race {
 public:
  explicit race(const race_timing& timing) : timing_(timing) {}

  // The program gives up then: delays shrink so that a second family gets its try before.
  void set_deadline(time_point deadline) { deadline_ = deadline; }

  // The endpoints known now, in the order of plan(). Those already started keep their state; those
  // not yet started and no longer listed are not tried. `complete`: no more will come.
  void set_plan(const endpoint_list& planned, bool complete, time_point now);

  // Events about endpoints that have no attempt under way, and all after the end, are ignored.
  void handle(const race_event& event, time_point now);

  // There may be more endpoints, which are dear to find out: poll() asks for them when there is no attempt
  // left under way, or when for last_resort_delay none has been started and none succeeds.
  void expect_last_resort() { last_resort_ = true; }

  // The program itself has begun an attempt at `where`: it counts like one that poll() asked for.
  void note_started(const endpoint& where, time_point now);

  // What to do next. Call until it says wait, won or lost; the last two are said once, then wait.
  race_action poll(time_point now);

  // The endpoint that poll() would have attempted now; nullptr: it would not.
  const endpoint* due(time_point now);

  // The earliest start of another attempt, as far as is known now.
  time_point next_start() const { return std::max(next_start_, floor_); }

  bool finished() const { return phase_ != phase::running; }
  std::size_t in_flight() const { return in_flight_; }
  bool started(const endpoint& where) const;

 private:
  enum class phase : std::uint8_t { running, won, lost };
  struct attempt {
    endpoint where;
    time_point started{};
    time_point expected_by = never;  // no answer until then: it may not be viable (CHANGE-4)
    bool ended = false;
  };

  attempt* find(const endpoint& where);
  const listed_endpoint* next_endpoint();
  const listed_endpoint* listed(const endpoint& where) const;
  bool brings_more(const endpoint_list& planned) const;
  bool is_overdue(time_point now) const;
  time_point start_of(const listed_endpoint& next) const;
  time_point turn_of(const listed_endpoint& next) const;
  attempt_reason reason_for(const listed_endpoint& next) const;
  duration delay_after(const listed_endpoint& e, time_point now) const;
  bool family_is_untried(const endpoint& starting) const;
  void win(const endpoint& where);

  race_timing timing_;
  time_point deadline_ = never;
  std::size_t cursor_ = 0;  // before it every endpoint of the plan has been attempted
  bool complete_ = false;
  bool last_resort_ = false;
  bool last_resort_said_ = false;
  std::size_t in_flight_ = 0;
  time_point last_start_ = time_point::min();
  time_point next_start_ = time_point::min();  // the Next Connection Attempt Timer
  bool hastened_ = false;                      // that timer, by a failure or trouble
  time_point floor_ = time_point::min();       // no start before it, whatever fails
  phase phase_ = phase::running;
  endpoint winner_{};
  bool told_ = false;
  bounded_vector<attempt, max_candidates> attempts_;  // in the order they were started
  endpoint_list plan_;
};

}  // namespace happy
