// A non-blocking connect() of the program. The original stays behind the fd, so that everything the
// program can ask of it while it is pending is the kernel's own answer; when the delay has passed, hidden
// attempts run, and if one wins, its socket is put in the original's place under the engine's lock.
//
// Who watches the delay: the worker where the process has threads anyway; in a process with one thread its
// own waiting calls (poll, select, epoll_wait: shim/hooks_wait.cc), so that a healthy connect makes none.
//
// A program that races by itself (a second connect() for the same lookup while the first is pending) has
// one race with several sockets: no endpoint is attempted twice by us, its own attempts push the timer
// back, and a hidden winner goes to a pending socket of its own family where there is one.
#pragma once

#include "racer/core.h"

namespace happy {

// Whether the race of the socket with this cookie is pending: a second connect() then asks for its state.
bool is_pending(core& c, std::uint64_t cookie);

// The pending race of the same thread and lookup as `r`, or nullptr.
pending_race* find_race_to_join(core& c, const pending_race& r);

// `r`, just described, becomes one more socket of `first`; its record is freed.
happy_step join(core& c, pending_race& first, pending_race& r, happy_connect& call, time_point now);

// The real connect() of the first socket has returned.
happy_step pending_returned(core& c, pending_race& r, happy_connect& call, int result, int error,
                            time_point now);

// The same for a socket that has joined.
happy_step joined_returned(core& c, pending_race& r, happy_connect& call, int result, int error,
                           time_point now);

// Moves the race on; worker thread, with the lock. The time at which it wants to be looked at again.
time_point tend_non_blocking(core& c, pending_race& r, time_point now);

// See abi.h. All of them take the lock.
void fds_closing(core& c, unsigned first, unsigned last);
void connecting_anew(core& c, int fd);
void fds_leaving(core& c, const int* fds, unsigned count);
std::int64_t wait_limit(core& c, const int* fds, unsigned count, std::uint64_t signals);
int change_epoll(core& c, int set, int operation, int fd, epoll_event* event);

// Tells the hooks how many non-blocking races there are. After anything that changes it, with the lock.
void count_pending(core& c);

}  // namespace happy
