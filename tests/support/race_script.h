// Races as scripts on virtual time. Everything that the state machine does must be listed:
//
//     0 < endpoints 2001:db8::1 2001:db8::2 192.0.2.1      what the lookup gave, in sorted order
//     0 > connect 2001:db8::1
//    30 < refused 2001:db8::1
//    30 > connect 192.0.2.1
//    50 < connected 192.0.2.1
//    50 > won 192.0.2.1
//
// Times are milliseconds. Inputs: endpoints LIST (no more will come), endpoints LIST ... (more may
// come), refused X, unreachable X (no packet left the host), troubled X, connected X, connected X T (T ms
// more are expected until success), succeeded X, deadline T (the program gives up then), last resort (there may
// be endpoints that are asked for in the end). Outputs: connect X, won X, lost, ask (what is found comes as
// endpoints). The first endpoint is the one that the program named. In a list X~T is an endpoint whose
// handshake is expected to take T, X~~T one from which that was learnt long ago, | separates
// groups, and || those that wait until all before them are exhausted.
#pragma once

#include <string>

#include "racer/timing.h"
#include "shim/base/endpoint.h"

namespace happy::test {

// Empty if the machine did what the script says, and nothing for a minute after its end; otherwise
// what went wrong, with all it did.
std::string run_race_script(const std::string& script, const race_timing& timing = {});

endpoint parse_endpoint(const std::string& text);

}  // namespace happy::test
