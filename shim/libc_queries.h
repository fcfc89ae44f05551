// What libc asks the nameservers itself: one after the other, five seconds each.
#pragma once

#include <resolv.h>

#include <cstddef>
#include <optional>

#include "shim/departure.h"

namespace happy {

// One res_query(), of the class IN.
struct raw_question {
  const char* name;
  int type;
  unsigned char* answer;
  std::size_t room;
  const char* function;  // that was called
};

// Asks as res_nquery(state, ...) does, where there is more than one nameserver: one that is silent is overtaken.
// With `search`, as res_nsearch() does. True: `size` is to be returned, errno and h_errno are set. False: libc is to be
// asked.
//
// Context:  as the function: not in signal handlers. May load the engine, waits for DNS.
bool answer_query(const raw_question& q, res_state state, bool search, int& size);

// While it lives, a nameserver of the state that is known to be silent does not come first. Costs a load where there
// is no engine, and nothing is known before the first lookup.
class answering_first {
 public:
  explicit answering_first(res_state state);
  answering_first() : answering_first(nullptr) {}  // the calling thread's state
  ~answering_first() { give_back(nullptr); }
  answering_first(const answering_first&) = delete;
  answering_first& operator=(const answering_first&) = delete;

 private:
  static void give_back(void*);

  std::optional<departure_watch> watch_;
};

}  // namespace happy
