// What races teach for the next ones.
#pragma once

#include "racer/core.h"

namespace happy {

// With the engine's lock held: noted, and written by save_history().

// A hidden attempt has won.
void note_hidden_win(core& c, const pending_race& r, time_point now);

// The program's own attempt at `where` has connected. On a healthy network nothing comes of it.
void note_own_success(core& c, const pending_race& r, const endpoint& where, time_point now);

// Without the lock: writes what was noted.
//
// Context:  signal-safe; one load where nothing was noted.
void save_history(core& c);

}  // namespace happy
