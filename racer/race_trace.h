// The trace lines of a race.
#pragma once

#include "racer/pending.h"
#include "resolver/trace.h"

namespace happy {

// "attempt", "winner", "loser": something happened at an endpoint.
void trace_race_endpoint(const char* event, const pending_race& r, const endpoint& where);
// An "attempt" event; of a priority group of SRV, with its number and why it was its turn.
void trace_attempt(const pending_race& r, const race_action& action);

void trace_failure(const pending_race& r, const endpoint& where, int error);
void trace_trouble(const pending_race& r, const endpoint& where, int error);
void trace_lost(const pending_race& r);
void trace_abandon(const pending_race& r, const char* why);
void trace_connect_pass(int fd, const endpoint& where, const char* reason);

}  // namespace happy
