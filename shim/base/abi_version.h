// By which shim and engine know that they were built together. While an installed copy is being replaced, one
// of them may be new and the other still old.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shim/abi.h"

namespace happy {

// The number counts what a size does not show. Every structure that crosses the border is in here.
inline constexpr std::uint32_t abi_version = [] {
  constexpr std::size_t sizes[] = {
      sizeof(happy_real),      sizeof(happy_settings), sizeof(happy_pending),
      sizeof(happy_host),      sizeof(happy_question), sizeof(happy_host_space),
      sizeof(happy_lookup),    sizeof(happy_connect),  sizeof(happy_query),
      sizeof(happy_synthesis), sizeof(happy_engine)};
  std::uint32_t mixed = HAPPY_ABI_VERSION;
  for (const std::size_t size : sizes) mixed = mixed * 31 + static_cast<std::uint32_t>(size);
  return mixed;
}();

}  // namespace happy
