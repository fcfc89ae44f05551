// Fuzz targets: what must hold of a parser whatever bytes it is given.
//
// A target is one file here, tests/fuzz/NAME.cc, with its corpus in tests/fuzz/corpus/NAME/. `make fuzz` runs it under
// libFuzzer; the unit tests replay every corpus.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>

namespace happy::fuzz {

using input = std::span<const std::uint8_t>;
using target = void (*)(input);

inline std::map<std::string, target>& targets() {
  static std::map<std::string, target> all;
  return all;
}

struct registration {
  registration(const char* name, target t) { targets().emplace(name, t); }
};

// What the target claims of a result. libFuzzer takes an exception for a crash.
inline void expect(bool claim, const char* what) {
  if (!claim) throw std::logic_error(what);
}

}  // namespace happy::fuzz

#define FUZZ_TARGET(name)                                                     \
  static void fuzz_##name(happy::fuzz::input data);                           \
  static const happy::fuzz::registration register_##name(#name, fuzz_##name); \
  static void fuzz_##name([[maybe_unused]] happy::fuzz::input data)
