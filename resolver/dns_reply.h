// What a DNS reply says about a name: addresses as glibc's nss_dns reads them, and service records.
#pragma once

#include <cstdint>
#include <span>

#include "resolver/answer.h"

namespace happy {

// Pure. `packet` is a reply whose question is known to match. Follows the CNAME records in their
// order; records of other names are passed over. What cannot be parsed is odd; a set of service records with
// a malformed one among them counts as none (RFC 9460 s2.2).
answer read_reply(record_type type, std::span<const std::uint8_t> packet);

// The same for who reads the packet himself: it is kept, and its header alone says what kind it is.
answer keep_reply(record_type type, std::span<const std::uint8_t> packet);

}  // namespace happy
