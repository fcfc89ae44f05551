// A real function that is looked up when it is first called: for hooks that most processes never reach,
// so that they cost nothing at start.
#pragma once

#include <atomic>
#include <cstddef>

#include "shim/base/guards.h"
#include "shim/next_function.h"

namespace happy {

// `Function` is the type of a pointer to it.
template <typename Function>
class late_function {
 public:
  template <std::size_t Size>
  constexpr explicit late_function(const char (&name)[Size]) {
    static_assert(Size <= sizeof name_);
    for (std::size_t i = 0; i < Size; ++i) name_[i] = name[i];
  }

  const char* name() const { return name_; }

  // nullptr where libc has none. Not signal-safe the first time.
  Function get() {
    const Function found = found_.load(std::memory_order_acquire);
    return found != nullptr ? found : find();
  }

 private:
  [[gnu::noinline, gnu::cold]] Function find() {
    errno_saver keep;
    const auto found = reinterpret_cast<Function>(find_next_function(name_));
    found_.store(found, std::memory_order_release);
    return found;
  }

  char name_[24]{};  // an array, as in shim/config.h
  std::atomic<Function> found_{nullptr};
};

}  // namespace happy
