// Notices that a frame is left without returning: by cancellation, pthread_exit() or siglongjmp().
#pragma once

#include <pthread.h>

// The older way of pthread_cleanup_push(). The newer one keeps a jmp_buf in the frame that siglongjmp()
// does not unlink; this one is called by glibc for every frame that a jump leaves, too.
extern "C" {
void _pthread_cleanup_push(struct _pthread_cleanup_buffer* buffer, void (*routine)(void*),
                           void* argument);
void _pthread_cleanup_pop(struct _pthread_cleanup_buffer* buffer, int execute);
}

namespace happy {

// While it lives, leaving its frame in such a way calls `routine(argument)`. It may run in a signal
// handler, on the thread that leaves.
class departure_watch {
 public:
  departure_watch(void (*routine)(void*), void* argument) {
    _pthread_cleanup_push(&buffer_, routine, argument);
  }
  ~departure_watch() { _pthread_cleanup_pop(&buffer_, 0); }
  departure_watch(const departure_watch&) = delete;
  departure_watch& operator=(const departure_watch&) = delete;

 private:
  _pthread_cleanup_buffer buffer_;
};

}  // namespace happy
