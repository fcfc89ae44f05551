// The resolver state that libc keeps for the calling thread (`_res`), which a program may have changed.
#pragma once

#include <resolv.h>

#include "resolver/system_files.h"

namespace happy {

// Whether libc would ask as `config` says: the thread has no state of its own yet, or one that says the
// same. A program that points `_res` at its own nameserver means it.
bool thread_resolver_agrees(const resolver_config& config);

// The same of a state that the program passes along.
bool resolver_agrees(const struct __res_state& state, const resolver_config& config);

// Which of its nameservers to ask first: 0, unless that one was silent lately and another was not.
int first_answering(const struct __res_state& state, time_point now);

}  // namespace happy
