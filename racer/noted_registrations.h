// What the program registers in its epoll sets, noted where /proc is not there to tell it later (a chroot, a sandbox).
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <optional>

#include "racer/open_files.h"
#include "shim/abi.h"

namespace happy {

// Looks whether /proc is there. If not, every change of an epoll set is noted from here on, if it is one for a TCP
// socket that is not connected; if it is, what was noted is dropped.
//
// Context:  with the engine's lock; signal-safe.
void look_for_proc(happy_pending& pending);

// The program may be about to lose /proc: changes are noted until look_for_proc() is asked again.
//
// Context:  with the engine's lock; signal-safe.
void doubt_proc(happy_pending& pending);

// After a change that the kernel has made.
//
// Context:  with the engine's lock; signal-safe.
void note_registration(int set, int operation, int fd, const epoll_event* event);

// How the socket behind `fd`, which the set has under that number, was registered last; none: it is not known.
//
// Context:  with the engine's lock.
std::optional<epoll_entry> noted_registration(int set, int fd);

}  // namespace happy
