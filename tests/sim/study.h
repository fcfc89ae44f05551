// How long connecting takes, over the simulation's mix of networks, by several ways of doing it.
#pragma once

#include <cstdint>

namespace happy::sim {

// Prints a table in Markdown.
void print_study(std::uint64_t seed, std::uint64_t runs);

}  // namespace happy::sim
