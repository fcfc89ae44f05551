// What moves a race on: the half of it that the caller's thread and the worker share.
// Everything here is called with the engine's lock held.
#pragma once

#include "racer/core.h"

namespace happy {

// Fills the race's plan from what is known of its name now.
void refresh_plan(core& c, pending_race& r, time_point now);

// Makes the dup of the program's fd that hidden attempts are modelled on, if it still is the socket
// that the race began with and can be copied. False: no race.
bool adopt_original(pending_race& r);

// Has the state machine start with the program's own attempt, which its caller then makes.
void advance_to_named(core& c, pending_race& r, time_point now);

// Does what the state machine asks for, starting hidden attempts as it says. Afterwards the race is
// won, lost, waits until the time returned, or was ended without result (and its record freed).
time_point advance(core& c, pending_race& r, time_point now);

// Asks the kernel how the hidden attempt at `fd` stands and tells the state machine.
void report_attempt(pending_race& r, int fd, time_point now);

// The program's own attempt has ended with `error`.
void fail_named(pending_race& r, int error, time_point now);

// The program's own attempt has connected: hidden ones are closed.
void connect_named(core& c, pending_race& r, time_point now);

// A signal that comes just when the caller is told can make the kernel start its connect() anew on the
// socket that was shut down: shuts it down again. The time at which to look next; `never`: no need.
time_point insist(pending_race& r, time_point now);

// Keeps the errors of a lost race for the program's walk along its list.
void keep_failures(core& c, pending_race& r, time_point now);

enum class delivery : std::uint8_t {
  told,        // the caller's thread knows
  not_now,     // it is not seen inside connect(): try again
  impossible,  // the program's fd is another socket now, or others hold it too
};

// Tells the caller's thread that the race is decided.
delivery publish(pending_race& r);

// Frees the record, whatever the outcome was; a worker that watched it looks for what is left.
void end_race(core& c, pending_race& r);

// Ends it with what its caller is told.
happy_step settle(core& c, pending_race& r, happy_connect& call, int result, int error);

// Gives up all races and waits until the worker is gone, at most 50 ms; forgets what is known of names
// if the network changes under it. Takes the lock itself.
void quiesce(core& c, bool network_changes);

// One of the program's sockets has its connection. A program that races by itself closes the others now. What is still
// there when the delay has passed is a request of its own: addresses of one lookup were taken in turns (aiohttp).
void begin_again(core& c, pending_race& r, time_point now);

// Ends a race without result: hidden attempts are closed, and of the program's fd nothing is touched but SO_SNDTIMEO,
// which is given back if the race has borrowed it.
void abandon(core& c, pending_race& r, const char* why);

// The program closes (or has disconnected) the fd of a connect() that blocks in another thread, and goes on in the
// kernel. Where the caller drives the race it is not in there: it waits for its own attempt, which goes on behind the
// dup.
void leave_alone(core& c, pending_race& r);

}  // namespace happy
