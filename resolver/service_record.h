// What service records say, and their wire forms: SVCB and HTTPS (RFC 9460), SRV (RFC 2782).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shim/base/bounded_vector.h"
#include "shim/base/endpoint.h"

namespace happy {

// Hints of one record and family that are kept. A record that has to fit into a UDP message of 1200 bytes
// beside others rarely carries more; further ones are ignored.
inline constexpr std::size_t max_hints = 8;

struct service_record {
  std::uint16_t priority = 0;  // 0 in SVCB and HTTPS: AliasMode
  std::uint16_t weight = 0;    // SRV only
  std::uint16_t port = 0;      // 0: the client's own
  std::string target{};        // in lower case, without the last dot; empty: "."
  // A client that speaks TCP and knows the keys of RFC 9460 can use it: no other key is mandatory, its ALPN
  // set has something for TCP, its port and target can be asked for.
  bool usable = true;
  bounded_vector<address, 2 * max_hints> hints{};
};

// Both are pure, and read nothing outside the spans.

// nullopt: malformed, and with it the whole set of records (RFC 9460 s2.2). What is merely inconsistent or
// incompatible is not usable.
// Spec:     RFC 9460 s2.2, s7, s8; SVCB-4, SVCB-5
std::optional<service_record> parse_svcb(std::span<const std::uint8_t> rdata);

// `rdata_at` and `rdata_size` lie within `packet`: senders exist that compress the target (RFC 3597 s4).
std::optional<service_record> parse_srv(std::span<const std::uint8_t> packet, std::size_t rdata_at,
                                        std::size_t rdata_size);

// Leaves `most` records: while there are too many, the last one of the priority that has most of them goes, of the
// worst such priority. So no priority loses its last record to another's abundance.
void limit_srv(std::vector<service_record>& records, std::size_t most);

// The order in which a client tries targets: by priority, and inside a priority at random, each with the
// probability that its weight gives it. `random`: state of the draws, so that a seed repeats them.
//
// Spec:     RFC 2782, Usage rules; XMPP-1
void order_srv(std::vector<service_record>& records, std::uint32_t& random);

}  // namespace happy
