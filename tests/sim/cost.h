// What order, plan and race cost, in processor time.
#pragma once

#include <cstddef>

namespace happy::sim {

// Microseconds for one connection by a name with so many addresses, half of each family: sorted, planned, and
// every endpoint attempted, because none answers. The median of many. What a lookup does not keep
// (max_candidates) is sorted only.
double cost_us(std::size_t endpoints);

// A line "ENDPOINTS MICROSECONDS" for several numbers.
void print_costs();

}  // namespace happy::sim
