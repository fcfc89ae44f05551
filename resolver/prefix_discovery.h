// What a DNS64 betrays about its prefix: RFC 7050, pure.
#pragma once

#include <span>

#include "resolver/translation.h"

namespace happy {

// The name with two A records, 192.0.0.170 and 192.0.0.171, and no AAAA but those that a DNS64 makes.
inline constexpr char discovery_name[] = "ipv4only.arpa";

// The prefixes behind all AAAA answers for discovery_name, in their order. One of the two well-known
// addresses is looked for at every place that RFC 6052 has for it. Where an answer shows one at several
// places (the prefix itself contains those bytes), a place counts if the other well-known address stands
// behind the same prefix in another answer; without such a witness the answer is not used.
//
// Spec:     RFC 7050 s3; V6ONLY-5
prefix_list discovered_prefixes(std::span<const address> answers);

}  // namespace happy
