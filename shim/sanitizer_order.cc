// AddressSanitizer's runtime ends a program in whose list of libraries another one stands before it, as those of
// /etc/ld.so.preload do. What it takes as its options before ASAN_OPTIONS is what this function says.

#ifndef __SANITIZE_ADDRESS__

#include <cstddef>
#include <cstring>

#include "shim/next_function.h"

namespace happy {
namespace {

using asan_options = const char* (*)();

constexpr char any_order[] = "verify_asan_link_order=0";

// Another preloaded library's own options, or the runtime's own, which are none.
const char* next_options() {
  const auto next = reinterpret_cast<asan_options>(find_next_function("__asan_default_options"));
  const char* options = next == nullptr ? nullptr : next();
  return options == nullptr ? "" : options;
}

}  // namespace
}  // namespace happy

extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  using namespace happy;
  static constinit char text[1024]{};
  const char* others = next_options();
  const std::size_t length = std::strlen(others);
  if (length + 1 + sizeof any_order > sizeof text) return others;
  std::memcpy(text, any_order, sizeof any_order - 1);
  text[sizeof any_order - 1] = ':';
  std::memcpy(text + sizeof any_order, others, length + 1);
  return text;
}

#endif
