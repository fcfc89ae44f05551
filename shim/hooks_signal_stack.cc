// The hook of sigaltstack(): which memory is a signal stack. With SS_AUTODISARM the kernel does not tell a handler that
// it stands on one, and what is below a small one is somebody's memory.

// ThreadSanitizer's runtime calls it before code that it watches can run.
#ifndef __SANITIZE_THREAD__

#include <csignal>

#include "shim/late_function.h"
#include "shim/readable.h"
#include "shim/stack_room.h"

namespace happy {
namespace {

constinit late_function<decltype(&::sigaltstack)> real_sigaltstack{"sigaltstack"};

}  // namespace
}  // namespace happy

extern "C" __attribute__((visibility("default"))) int sigaltstack(const stack_t* stack,
                                                                  stack_t* before) noexcept {
  using namespace happy;
  stack_t wanted{};  // the two may be one
  if (is_readable(stack, sizeof wanted)) wanted = *stack;
  const int result = real_sigaltstack.get()(stack, before);
  if (result == 0) note_signal_stack(wanted);
  return result;
}

#endif
