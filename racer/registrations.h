// Takes a socket out of the epoll sets that watch it, and puts it back.
#pragma once

#include "racer/open_files.h"

namespace happy {

// A registration follows the file, not the number: it has to be taken away while the number still shows the old
// file. Left in place it would go on firing as long as anything holds that file, and could not be removed any
// more. What is not registered any more (see open_files_batch) leaves the list.
//
// Returns:  false if one of them stays; nothing is changed then.
// Context:  with the engine's lock, which the hook of epoll_ctl() takes too.
bool unregister(epoll_entry_list& entries);

// A socket that is ready wakes who waits for the set.
void register_again(const epoll_entry_list& entries);

}  // namespace happy
