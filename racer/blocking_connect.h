// A blocking connect() of the program, from the caller's side: the steps of abi.h.
//
//   begin -> CONNECT (on the program's own fd) -> returned -> RESULT
//                                                    |-> CONNECT again (the delay has passed: hidden
//                                                    |                 attempts run beside it)
//                                                    `-> WAIT (it failed, others still run) -> woken
//
// Where another endpoint has won, returned and woken do the hand-over on the caller's own thread.
//
// Where no worker can be made (in a signal handler, which may have interrupted malloc(), or where the system
// has no thread to give), POLL takes the place of WAIT and of the second CONNECT: the caller moves the race on.
//
// In a process with one thread the delay is SO_SNDTIMEO on the program's own fd, and no thread is made
// until it has passed; otherwise the worker watches the time.
#pragma once

#include "racer/core.h"

namespace happy {

// When SO_SNDTIMEO, as the program has set it, ends a connect() that begins now.
time_point program_deadline(const pending_race& r, time_point now);

// The first step: CONNECT, with the delay on the caller's own clock or on the worker's; PASS if there is
// nobody to watch the time, or nothing to go on with where another thread closes the fd.
happy_step start_blocking(core& c, pending_race& r, happy_connect& call, time_point now);

happy_step blocking_returned(core& c, pending_race& r, happy_connect& call, int result, int error,
                             time_point now);
happy_step connect_woken(core& c, happy_connect& call, int error);
happy_step connect_polled(core& c, happy_connect& call, int error);

// See abi.h; takes the lock.
void disconnecting(core& c, int fd);

// The caller has left by cancellation or siglongjmp().
void blocking_left(core& c, pending_race& r);

// Gives SO_SNDTIMEO back to the program, if the race has borrowed it. `sure`: nobody can have replaced the
// socket meanwhile (one thread, no signal handler).
void restore_send_timeout(pending_race& r, bool sure = false);

}  // namespace happy
