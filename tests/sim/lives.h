// Many connections of several clients over one network that breaks and heals, each client with its history.
#pragma once

#include <cstdint>
#include <string>

namespace happy::sim {

// What went wrong in the lives that follow from `seed`; "" if everything held.
std::string live(std::uint64_t seed);

}  // namespace happy::sim
