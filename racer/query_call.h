// A res_query() of the program, from the caller's side: the steps of abi.h.
//
//   begin -> POLL -> continue -> POLL ... -> DONE or DECLINED
#pragma once

#include "racer/core.h"

namespace happy {

// Declines where libc alone knows whom to ask, and where there is nothing to gain: one nameserver.
happy_lookup_step query_begin(core& c, happy_query& call);
happy_lookup_step query_continue(happy_query& call);
void query_left(happy_query& call);

}  // namespace happy
