// A real function that is looked up when it is first called: for hooks that most processes never reach,
// so that they cost nothing at start.
#pragma once

#include <dlfcn.h>

#include <atomic>

#include "shim/base/guards.h"

namespace happy {

// `Function` is the type of a pointer to it.
template <typename Function>
class late_function {
 public:
  constexpr explicit late_function(const char* name) : name_(name) {}

  // nullptr where libc has none. Not signal-safe the first time (dlsym).
  Function get() {
    Function found = found_.load(std::memory_order_acquire);
    if (found != nullptr) return found;
    errno_saver keep;
    found = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name_));
    found_.store(found, std::memory_order_release);
    return found;
  }

 private:
  const char* name_;
  std::atomic<Function> found_{nullptr};
};

}  // namespace happy
