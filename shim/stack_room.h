// How much of its stack the calling thread has left: threads and coroutines of 16 KiB look names up with libc, and
// connect() needs next to nothing.
#pragma once

#include <csignal>
#include <cstdint>

namespace happy {

// Whether `needed` bytes below this frame can be used. Where the frame stands on another stack than the thread's own,
// as coroutines do, only one that is seen to end further down is trusted: what lies below it in a heap is another's.
//
// Context:  a few system calls, the first time for each thread and depth, on coroutines each time; signal-safe.
bool has_stack(std::uintptr_t needed);

// Whether the thread stands on a signal stack that leaves less than a race needs: connect() itself needs none.
//
// Context:  one system call; signal-safe.
bool is_short_of_stack();

// The kernel has taken this for the thread's signal stack. With SS_AUTODISARM it takes it for none while a handler
// stands on it. Signal-safe.
void note_signal_stack(const stack_t& stack);

// A lookup's deepest, with the loading of the engine and a trace; and that of a connect().
inline constexpr std::uintptr_t lookup_stack = 48 * 1024;
inline constexpr std::uintptr_t connect_stack = 16 * 1024;

}  // namespace happy
