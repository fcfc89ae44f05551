// The resolution as a state machine: which queries to send, when to stop waiting, what came in.
// Takes no clock and no socket; see lookup.h for the half that does.
#pragma once

#include <array>
#include <cstdint>

#include "resolver/answer.h"
#include "shim/base/time.h"

namespace happy {

// Why a resolution stopped waiting.
enum class move_on : std::uint8_t {
  all_answered,        // every query has its answer
  preferred_answered,  // ANSWER-2: an address, and the preferred family has spoken
  resolution_delay,    // ANSWER-3: an address, and the Resolution Delay has passed since
  deadline,            // glibc would have given up by now
};

const char* to_text(move_on reason);

// Once the preferred family has given addresses, the other family's answer is waited for a moment more.
// Programs look at the list that they get (some choose a family by it), and which of two answers that
// come together is read first must not decide. 99 of 100 pairs of answers arrive within 21 ms of each
// other (browser telemetry, 2026).
inline constexpr duration default_companion_delay = milliseconds(25);

// It moves with the Resolution Delay, of whose default it is the half.
constexpr duration companion_delay_for(duration resolution_delay) { return resolution_delay / 2; }

// Spec:     hev3 Sending DNS Queries, hev3 Handling DNS Answers Asynchronously
class resolution {
 public:
  struct settings {
    bool ipv4 = true;  // which families to ask for; at least one
    bool ipv6 = true;
    family preferred = family::ipv6;    // ANSWER-7
    duration delay = milliseconds(50);  // Resolution Delay
    duration companion_delay = default_companion_delay;
    bool complete = false;        // wait for every answer, as glibc does
    time_point deadline = never;  // of the whole resolution
  };

  struct action {
    enum class kind : std::uint8_t {
      query,     // send a query of `type`
      wait,      // nothing to do before `until`, unless an answer comes
      finished,  // stop waiting, because of `reason`; late answers may still be handled
    };
    kind what = kind::wait;
    record_type type = record_type::aaaa;
    time_point until = never;
    move_on reason = move_on::all_answered;
  };

  explicit resolution(const settings& s) : settings_(s) {}

  // An answer came in. Each query is answered once; a second answer to it is ignored.
  void handle(const answer& a, time_point now);

  // What to do next. Call until it says wait or finished.
  action poll(time_point now);

  // From now on every answer is waited for, as glibc does.
  void want_all() { settings_.complete = true; }

  // The answer to `type`, or nullptr while there is none (or it was not asked for).
  const answer* answered(record_type type) const;

  bool asked(family f) const { return f == family::ipv6 ? settings_.ipv6 : settings_.ipv4; }
  bool any_positive() const { return first_positive_ != never; }
  bool all_answered() const { return open_queries() == 0; }

 private:
  struct query {
    bool sent = false;
    bool answered = false;
    answer what;
  };

  query& of(record_type type) { return queries_[type == record_type::aaaa ? 0 : 1]; }
  const query& of(record_type type) const { return queries_[type == record_type::aaaa ? 0 : 1]; }
  bool finished_by(move_on& reason, time_point now) const;
  time_point addresses_wait_until() const;
  int open_queries() const;

  settings settings_;
  std::array<query, 2> queries_;
  time_point first_positive_ = never;
  time_point preferred_positive_ = never;
};

}  // namespace happy
