// Notices that a frame is left without returning: by cancellation, pthread_exit() or siglongjmp().
#pragma once

#include "shim/late_libc.h"

namespace happy {

// While it lives, leaving its frame in such a way calls `routine(argument)`. It may run in a signal
// handler, on the thread that leaves.
class departure_watch {
 public:
  departure_watch(void (*routine)(void*), void* argument) {
    libc.cleanup_push(&buffer_, routine, argument);
  }
  ~departure_watch() { libc.cleanup_pop(&buffer_, 0); }
  departure_watch(const departure_watch&) = delete;
  departure_watch& operator=(const departure_watch&) = delete;

 private:
  _pthread_cleanup_buffer buffer_;
};

}  // namespace happy
