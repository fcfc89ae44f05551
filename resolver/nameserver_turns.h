// In which order and when the nameservers are asked one question, as a state machine without a clock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shim/base/time.h"

namespace happy {

// A nameserver that says nothing for this long is not waited for alone: the next one is asked too. An
// answer from the far side of the Earth, itself asked for from there, comes in 250 ms.
inline constexpr duration overtake_after = milliseconds(300);

// Rounds over all nameservers, each of which is asked once in a round. Those asked go on being listened to
// until the round ends; a round in which all have failed ends at once.
//
// Spec:     hev3 Multiple DNS Servers
class nameserver_turns {
 public:
  struct settings {
    std::size_t nameservers = 1;  // in the order in which to ask them
    int rounds = 1;
    duration round{};  // how long one lasts; glibc's, so that all of them end when glibc's do
  };

  struct action {
    enum class kind : std::uint8_t {
      ask,     // nameserver `which`, in the round that now runs
      forget,  // a round is over: all that are still silent
      wait,    // nothing to do before `until`, unless a nameserver answers or fails
      over,    // every round has passed
    };
    kind what = kind::wait;
    std::size_t which = 0;
    time_point until = never;
  };

  explicit nameserver_turns(const settings& s) : settings_(s) {}

  // One that was asked will not answer in this round (it refused, it cannot be reached): the next one is due.
  void failed();

  // What to do next. Call until it says wait or over.
  action poll(time_point now);

  // At least one round ended in silence.
  bool was_silent() const { return silent_; }

 private:
  bool round_is_over(time_point now) const;

  settings settings_;
  int begun_ = 0;         // rounds
  std::size_t next_ = 0;  // to be asked in this round
  std::size_t open_ = 0;  // asked in this round, neither answered nor failed
  time_point asked_at_ = never;
  time_point round_end_ = never;
  bool hurry_ = false;  // one has failed, and nobody was asked instead
  bool silent_ = false;
};

}  // namespace happy
