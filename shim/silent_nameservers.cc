#include "shim/silent_nameservers.h"

#include <netinet/in.h>
#include <resolv.h>

#include "shim/base/guards.h"
#include "shim/late_function.h"

namespace happy {
namespace {

constinit late_function<decltype(&::__res_state)> real_res_state{"__res_state"};
constinit late_function<int (*)(res_state)> real_res_ninit{"__res_ninit"};

// How many nameservers the state had; 0: nothing is to be given back.
[[gnu::tls_model("initial-exec")]] constinit thread_local int taken = 0;

}  // namespace

silent_nameservers::silent_nameservers(bool silent) {
  if (!silent) return;
  const errno_saver keep;
  auto* const state = real_res_state.get()();
  if ((state->options & RES_INIT) == 0 && real_res_ninit.get()(state) != 0) return;
  watch_.emplace([](void*) { give_back(); }, nullptr);
  taken = state->nscount;
  state->nscount = 0;
}

void silent_nameservers::give_back() {
  if (taken == 0) return;
  real_res_state.get()()->nscount = taken;
  taken = 0;
}

}  // namespace happy
