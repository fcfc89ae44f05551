// The order of attempts, from the sorted list of endpoints.
#pragma once

#include <span>

#include "resolver/intent.h"
#include "shim/base/endpoint.h"

namespace happy {

using endpoint_list = bounded_vector<endpoint, max_candidates>;

// `named`, the endpoint that the program's own fd attempts, comes first; the rest keep their order but
// for the families, which alternate after the first `preferred_family_count` endpoints of its family.
// `named` need not be in `sorted`.
//
// Spec:     hev3 Sorting Destination Endpoints Within Groups; SORT-6, SORT-7
endpoint_list plan(std::span<const endpoint> sorted, const endpoint& named,
                   int preferred_family_count);

}  // namespace happy
