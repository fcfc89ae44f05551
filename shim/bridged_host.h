// Names that have only IPv6, for the callers of gethostbyname() and its kin.
#pragma once

#include <netinet/in.h>

#include "shim/abi.h"
#include "shim/process.h"

namespace happy {

// HAPPY_BRIDGE is not `never`.
inline bool may_bridge() { return process_environment().settings.bridge != 2; }

// An address of the pool for `name`; false: libc's own answer holds. Waits for DNS.
bool bridge_host(const happy_engine* engine, const char* name, in_addr& found);

}  // namespace happy
