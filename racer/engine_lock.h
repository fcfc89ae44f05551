// The engine's mutex.
//
// ThreadSanitizer overlooks what is locked by hooks of poll(), select() and epoll_wait(), because these are called from
// inside of its own. It is told here, or it would report all that such a hook touches.
#pragma once

#include <mutex>

#include "shim/base/real_functions.h"
#include "shim/base/time.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace happy {

class engine_lock {
 public:
  void lock() {
    mutex_.lock();
    tell_taken();
  }

  bool try_lock() {
    const bool taken = mutex_.try_lock();
    if (taken) tell_taken();
    return taken;
  }

  bool try_lock_for(milliseconds patience) {
    timespec until{};
    real->clock_gettime(CLOCK_REALTIME, &until);
    const auto ns = until.tv_nsec + std::chrono::nanoseconds(patience).count();
    until.tv_sec += ns / 1'000'000'000;
    until.tv_nsec = ns % 1'000'000'000;
    const bool taken = pthread_mutex_timedlock(mutex_.native_handle(), &until) == 0;
    if (taken) tell_taken();
    return taken;
  }

  void unlock() {
    tell_given_back();
    mutex_.unlock();
  }

 private:
#ifdef __SANITIZE_THREAD__
  void tell_taken() { __tsan_acquire(this); }
  void tell_given_back() { __tsan_release(this); }
#else
  void tell_taken() {}
  void tell_given_back() {}
#endif

  std::mutex mutex_;
};

}  // namespace happy
