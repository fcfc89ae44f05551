// A non-blocking connect() of a program that was handed fewer addresses than its name has, because the
// other family's answer is late. Such a program has no address to go on with, so it must not see the first
// one fail while another may still connect. Its socket is veiled: it shows the kernel's own picture of a
// handshake under way, for as long as the race is open, and a hidden attempt stands for the program's own.
// Whichever way the race ends, a socket with that outcome is handed over: the winner, or, if all is lost,
// the one whose handshake with the named address has failed, its error unread.
//
// The picture: the socket connects to itself over the loopback, and a filter drops what arrives. Events,
// options and time-outs are the kernel's; only getsockname() shows a loopback address meanwhile.
#pragma once

#include "racer/core.h"

namespace happy {

// Whether the program may lack addresses of the lookup that `r`'s race draws on.
bool lacks_addresses(core& c, const pending_race& r, time_point now);

// The first step of a veiled connect(). STEP_PASS: it cannot be veiled, or there is no worker to be had, and all is
// as before: a program that waits by system calls of its own would wait for ever where its calls alone move the
// race on. It is raced without a veil then.
//
// Context:  the caller's thread, with the lock; may make the worker.
happy_step start_veiled(core& c, pending_race& r, happy_connect& call, time_point now);

// Whether an attempt at `where` stands for the program's own, so that its failure is the program's too.
bool stands_for_own(const pending_race& r, const endpoint& where);

// Ends the picture without a socket to hand over: the program's socket tries the named address itself, as
// it would have without us.
void lift_veil(const pending_race& r);

}  // namespace happy
