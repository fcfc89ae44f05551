// A blocking connect() of the program, from the caller's side: the steps of abi.h.
//
//   begin -> CONNECT (on the program's own fd) -> returned -> RESULT
//                                                    |-> CONNECT again (the delay has passed: hidden
//                                                    |                 attempts run beside it)
//                                                    `-> WAIT (it failed, others still run) -> woken
//
// Where another endpoint has won, returned and woken do the hand-over on the caller's own thread.
//
// In a process with one thread the delay is SO_SNDTIMEO on the program's own fd, and no thread is made
// until it has passed; otherwise the worker watches the time.
#pragma once

#include "racer/core.h"

namespace happy {

happy_step connect_begin(core& c, happy_connect& call);
happy_step connect_returned(core& c, happy_connect& call, int result, int error);
happy_step connect_woken(core& c, happy_connect& call, int error);
void connect_left(core& c, happy_connect& call);

}  // namespace happy
