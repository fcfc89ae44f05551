// What a DNS reply says about the addresses of a name, as glibc's nss_dns reads it.
#pragma once

#include <cstdint>
#include <span>

#include "resolver/answer.h"

namespace happy {

// Pure. `packet` is a reply whose question is known to match. Follows the CNAME records in their
// order; addresses of other names are passed over. What cannot be parsed is odd.
answer read_reply(record_type type, std::span<const std::uint8_t> packet);

}  // namespace happy
