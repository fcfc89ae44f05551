// Where the program's threads are: whether the one that called connect() is still in it, and who sleeps on a socket.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "racer/open_files.h"

namespace happy {

// Whether a frame at `inner` may be a call made on top of the one at `outer` (from a signal handler): it is
// further down the stack, or on another stack.
bool is_below(const void* inner, const void* outer);

// True if /proc shows `thread` asleep in connect(fd) or in the futex wait on `word`, or if /proc tells
// nothing. False while it runs a signal handler, and for good when one has left by siglongjmp().
//
// Context:  opens and reads one file of /proc; does not block.
bool caller_is_waiting(pid_t thread, int fd, const std::atomic<std::uint32_t>* word);

// Whether a thread is inside a call that sends or receives on one of these numbers: it sleeps on the file, and would see
// that end. False in a process of more than 64 threads, and where /proc tells nothing.
//
// Context:  opens and reads one file of /proc for each thread; does not block.
bool is_slept_on(const fd_list& fds);

}  // namespace happy
