// The resolver state that libc keeps for the calling thread (`_res`), which a program may have changed.
#pragma once

#include "resolver/system_files.h"

namespace happy {

// Whether libc would ask as `config` says: the thread has no state of its own yet, or one that says the
// same. A program that points `_res` at its own nameserver means it.
bool thread_resolver_agrees(const resolver_config& config);

}  // namespace happy
