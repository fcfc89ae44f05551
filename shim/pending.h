// Whether any non-blocking socket of the program is being raced: what the hooks of close(), poll(),
// epoll_ctl() and the like ask first.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include "shim/abi.h"
#include "shim/process.h"

namespace happy {

inline constinit happy_pending pending_counts{};

// One load and one branch while nothing is pending. Signal-safe.
inline bool races_pending() {
  return __atomic_load_n(&pending_counts.races, __ATOMIC_ACQUIRE) != 0 && hooks_live() &&
         !foreign_process();
}

// Whether the engine has to know of a change of an epoll set. As cheap, and signal-safe.
inline bool epoll_watched() {
  return (__atomic_load_n(&pending_counts.races, __ATOMIC_ACQUIRE) |
          __atomic_load_n(&pending_counts.notes_registrations, __ATOMIC_ACQUIRE)) != 0 &&
         hooks_live() && !foreign_process();
}

// The numbers `first` to `last` will mean something else: races on them end first. Costs as much as
// races_pending() while nothing is pending.
void note_closing(unsigned first, unsigned last);

// Before and after a setsockopt(): a hidden attempt has the options that the socket had when it was made, and the engine
// is to know of a change. As cheap, and signal-safe.
inline void note_option_change() {
  if (races_pending()) __atomic_fetch_add(&pending_counts.option_changes, 1, __ATOMIC_SEQ_CST);
}

// The program becomes another by exec(), or sends a message that may carry descriptors: a socket that goes along is
// raced no more. As cheap, and signal-safe.
void note_exec();
void note_sending(const msghdr* message);

// The real epoll_ctl(), but not while a socket is being replaced. Costs as much as epoll_watched() while
// nothing is.
int change_epoll(int set, int operation, int fd, epoll_event* event);

}  // namespace happy
