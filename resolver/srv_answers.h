// SRV answers that programs have got: which names are targets, and what a lookup of one belongs to.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "resolver/service_record.h"
#include "shim/base/time.h"

namespace happy {

// A program that asks for more domains than this before it connects to the first races plainly there.
inline constexpr std::size_t max_srv_answers = 16;

// How long a lookup of a target is taken to follow from an answer: as long as its addresses are known.
inline constexpr duration srv_answer_lifetime = std::chrono::seconds(60);

// The targets that a lookup's own target stands beside; it is the first of them.
struct srv_companions {
  std::vector<service_record> records;  // empty: it is alone, or no target
  std::uint16_t port = 0;               // of its own record
};

// Not for two threads at once.
class srv_answers {
 public:
  void note(std::vector<service_record> records, time_point now);

  bool is_target(std::string_view name, time_point now) const;
  // By a record with this port.
  bool is_target(std::string_view name, time_point now, std::uint16_t port) const;

  // Of a lookup of `name` by the program: the targets of the same priority that it has not looked up yet, in
  // the order that RFC 2782 draws (`random`: see order_srv()). Of the latest answer that has the name; each
  // target counts once, so that a program that walks its list does not race what has failed already.
  //
  // Spec:     XEP-0495 s4.1
  // `port`: the one that the lookup names; 0: none. It tells apart the records of a target that has several, and the
  // services of a host: a lookup for a port that no record has is none of a target.
  srv_companions follow(std::string_view name, std::uint32_t& random, time_point now,
                        std::uint16_t port = 0);

 private:
  struct seen {
    std::vector<service_record> left;  // not looked up yet
    std::vector<service_record> all;
    time_point since{};
  };

  void forget_old(time_point now);

  std::deque<seen> answers_;  // oldest first
};

}  // namespace happy
