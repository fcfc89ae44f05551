// Finds, checks and loads libhappy-engine.so, on the first lookup of a real name.
#pragma once

#include "shim/abi.h"

namespace happy {

// The engine, loading it if nobody has yet; nullptr if it cannot be had, for good.
// May allocate and read files; other threads that ask meanwhile wait for at most `load_patience`.
const happy_engine* load_engine();

// The engine if it is already there. Signal-safe.
const happy_engine* loaded_engine();

// Fork handlers: keep the engine's state whole on both sides.
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

}  // namespace happy
