// Which bit of happy_pending::known_addresses stands for an address. Both sides compute it.
#pragma once

#include "shim/abi.h"
#include "shim/base/endpoint.h"

namespace happy {

inline unsigned filter_bit(const address& a) {
  std::uint32_t mixed = 2166136261U;  // FNV-1a
  for (const std::uint8_t byte : a.bytes) mixed = (mixed ^ byte) * 16777619U;
  return (mixed ^ (mixed >> 16)) % 256;
}

inline void mark_known(happy_pending& p, const address& a) {
  const unsigned bit = filter_bit(a);
  __atomic_fetch_or(&p.known_addresses[bit / 64], std::uint64_t{1} << (bit % 64), __ATOMIC_RELAXED);
}

inline bool may_be_known(const happy_pending& p, const address& a) {
  const unsigned bit = filter_bit(a);
  return ((__atomic_load_n(&p.known_addresses[bit / 64], __ATOMIC_RELAXED) >> (bit % 64)) & 1) != 0;
}

}  // namespace happy
