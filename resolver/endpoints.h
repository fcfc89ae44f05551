// What a resolution has found, as endpoints to try.
#pragma once

#include <cstdint>
#include <vector>

#include "resolver/address_order.h"
#include "resolver/resolution.h"

namespace happy {

// Both families of one name.
inline constexpr std::size_t max_candidates = 2 * max_addresses_per_answer;

// Both lists are unsorted, and hold no endpoint twice.

// The addresses of the name itself: what a program is handed, and races at any port. Hints at the name stand
// for its records until those arrive. With SRV records: those of the targets, at their ports, then what is
// known of the name's own (XMPP-6).
std::vector<candidate> own_candidates(const resolution& state);

// For a connect() to the service's own port `port`: the endpoints that service records name, each with the
// port and priority of its record, then the name's own addresses (RFC 9460 s3). Empty where no service
// record can be used. `keep_hints`: hints that the records of their name do not confirm come last instead of
// being dropped (SVCB-3).
// Spec:     hev3 Resolving SVCB/HTTPS, hev3 Grouping By Service Priority
std::vector<candidate> service_candidates(const resolution& state, std::uint16_t port,
                                          bool keep_hints);

}  // namespace happy
