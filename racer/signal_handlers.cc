#include "racer/signal_handlers.h"

#include <csignal>

#include "shim/base/real_functions.h"

namespace happy {

handlers installed_handlers() {
  bool restarting = false;
  bool interrupting = false;
  for (int number = 1; number < _NSIG; ++number) {
    struct sigaction action;
    if (real->sigaction(number, nullptr, &action) != 0) continue;  // glibc's own two
    const bool installed = action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    if (!installed) continue;
    ((action.sa_flags & SA_RESTART) != 0 ? restarting : interrupting) = true;
  }
  if (!interrupting) return handlers::restarting;
  return restarting ? handlers::mixed : handlers::interrupting;
}

}  // namespace happy
