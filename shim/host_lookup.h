// Lookups for the callers of gethostbyname() and its kin.
#pragma once

#include <netinet/in.h>

#include "shim/abi.h"
#include "shim/process.h"

namespace happy {

// HAPPY_BRIDGE is not `never`.
inline bool may_bridge() { return process_environment().settings.bridge != 2; }

// What gethostbyname_r() returns, as far as the engine can tell; false: libc is to be asked, and `space` is as it
// was (with `code` EAI_AGAIN: see silent_nameservers.h). Waits for DNS.
bool look_up_host(const happy_engine* engine, const char* name, int af, happy_host_space& space,
                  int& code);

// A name that has only IPv6: an address of the pool for `name`; false: libc's own answer holds. Waits for DNS.
bool bridge_host(const happy_engine* engine, const char* name, in_addr& found);

}  // namespace happy
