// What the DNS said to one query.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "resolver/service_record.h"
#include "shim/base/bounded_vector.h"
#include "shim/base/endpoint.h"

namespace happy {

enum class record_type : std::uint16_t { a = 1, aaaa = 28, srv = 33, svcb = 64, https = 65 };

constexpr bool is_address(record_type t) { return t == record_type::a || t == record_type::aaaa; }

constexpr record_type record_for(family f) {
  return f == family::ipv4 ? record_type::a : record_type::aaaa;
}
constexpr family family_of(record_type t) {
  return t == record_type::a ? family::ipv4 : family::ipv6;
}

// ANSWER-5: everything but `positive` is a negative answer; which one decides the error code if all are.
enum class answer_kind : std::uint8_t {
  positive,
  no_data,         // NOERROR without records of the type
  name_error,      // NXDOMAIN
  hollow,          // NOERROR with records, but none that leads to an address
  server_failure,  // SERVFAIL, REFUSED, NOTIMP
  odd,             // any other code, a reply that cannot be parsed
  not_sent,        // no descriptor or memory to ask with
  timed_out,       // no server answered within timeout x attempts
};

// How the nameservers put a server_failure. It decides whether glibc goes on along the search list.
enum class refusal : std::uint8_t {
  unreachable,  // none of them said anything: nobody listens there
  servfail,
  other_code,  // REFUSED, NOTIMP
  several,     // SERVFAIL from one and another code from another
};

constexpr refusal merge(refusal a, refusal b) {
  if (a == refusal::unreachable) return b;
  return b == refusal::unreachable || a == b ? a : refusal::several;
}

// More addresses of one name in one family than any client could try within its patience: at 250 ms
// an attempt, the 48th of both families would start after 24 s. Further ones are ignored.
inline constexpr std::size_t max_addresses_per_answer = 48;

// SVCB and HTTPS records of one answer that are kept, those of the best priorities; and of any type as many that
// cannot be used. A service with more alternatives than a client tries within its patience gains nothing by them.
inline constexpr std::size_t max_service_records = 8;

// SRV records, among which the draws by weight are made: more than fit into an answer by UDP.
inline constexpr std::size_t max_srv_records = 64;

struct answer {
  record_type type = record_type::a;
  answer_kind kind = answer_kind::server_failure;
  refusal refused = refusal::unreachable;  // if it is a server_failure
  bounded_vector<address, max_addresses_per_answer> addresses;
  std::vector<service_record> services;  // of the other types; the unusable ones last
  std::string canonical_name;            // end of the CNAME chain; the name itself without one
  std::vector<std::string> aliases;      // the names on the way there
  bool odd_chain = false;                // glibc would show the chain in another way, or not at all
  std::chrono::seconds ttl{0};
  bool irregular = false;  // there were more addresses than fit, or one came twice
  std::vector<std::uint8_t>
      packet;  // of a query_reading::packet: all of the reply, and nothing above but the kind
};

}  // namespace happy
