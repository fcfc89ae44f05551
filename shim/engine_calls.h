// How hooks call the engine: at once, or in steps (abi.h), between which only the shim blocks.
#pragma once

#include "shim/abi.h"
#include "shim/base/guards.h"
#include "shim/base/real_functions.h"
#include "shim/departure.h"
#include "shim/engine_visit.h"
#include "shim/loader.h"

namespace happy {

// Calls `tell(engine)` if there is one. errno survives.
template <typename Tell>
void tell_engine(Tell&& tell) {
  const happy_engine* engine = loaded_engine();
  if (engine == nullptr) return;
  errno_saver keep;
  engine_visit visit;
  tell(*engine);
}

// While it lives, leaving its frame without returning (departure.h) calls the engine's `left`.
template <typename Call>
class left_call_watch {
 public:
  left_call_watch(void (*left)(Call*), Call& call)
      : left_(left), call_(&call), watch_(leave, this) {}
  left_call_watch(const left_call_watch&) = delete;
  left_call_watch& operator=(const left_call_watch&) = delete;

 private:
  static void leave(void* argument) {
    const auto* self = static_cast<const left_call_watch*>(argument);
    {
      engine_visit visit;
      self->left_(self->call_);
    }
    signals_off::undo();
  }

  void (*left_)(Call*);
  Call* call_;
  departure_watch watch_;
};

// Asks the nameservers, by a happy_lookup or a happy_query. That is a cancellation point, and programs jump out of it:
// nothing that has to be undone is on the stack while it sleeps, but what `left` undoes. A signal that came during a
// visit of the engine is handled at its end, and may be the end of this frame.
template <typename Call>
happy_lookup_step ask_in_steps(Call& call, happy_lookup_step (*begin)(Call*),
                               happy_lookup_step (*go_on)(Call*), void (*left)(Call*)) {
  const left_call_watch<Call> watch(left, call);
  const auto visit_engine = [&](happy_lookup_step (*step)(Call*)) {
    engine_visit visit;
    return step(&call);
  };
  happy_lookup_step step = visit_engine(begin);
  while (step == HAPPY_LOOKUP_POLL) {
    real->poll(call.fds, call.fd_count, call.timeout_ms);  // EINTR: the engine looks at the clock
    step = visit_engine(go_on);
  }
  return step;
}

}  // namespace happy
