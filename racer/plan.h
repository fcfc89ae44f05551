// The order of attempts, from the sorted list of endpoints.
#pragma once

#include <span>

#include "resolver/intent.h"
#include "shim/base/endpoint.h"

namespace happy {

// An endpoint on the list.
struct listed_endpoint {
  endpoint where;
  std::uint32_t group = 0;  // of its service (GROUP-2): neighbours of one group have one number
  bool in_turn = false;     // SRV: only once the groups before its own are exhausted (XMPP-2)
  duration expected_handshake{0};  // from the history of its path; 0: unknown
  bool answered_lately = false;    // that history is recent
  bool translated = false;         // NAT64-1: by a NAT64, so that it counts as IPv4

  friend constexpr bool operator==(const listed_endpoint&, const listed_endpoint&) = default;
};

using endpoint_list = bounded_vector<listed_endpoint, max_candidates>;

// `named`, the endpoint that the program's own fd attempts, comes first. Groups follow one another; inside
// each the endpoints keep their order but for the families: after the first `preferred_family_count`
// endpoints of its first family they alternate. In the first group `named` counts as the first.
// `named` need not be in `sorted`.
//
// Spec:     hev3 Sorting Destination Endpoints Within Groups; GROUP-4, SORT-6, SORT-7
endpoint_list plan(std::span<const listed_endpoint> sorted, const endpoint& named,
                   int preferred_family_count);

}  // namespace happy
