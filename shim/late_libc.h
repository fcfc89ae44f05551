// What the shim needs of libc once the engine is there. It is looked up then: each function that a library
// imports is searched for by the loader at the start of every process.
#pragma once

#include <pthread.h>

namespace happy {

struct late_libc {
  void* (*dlopen)(const char* path, int flags);
  int (*dlinfo)(void* library, int request, void* out);
  int (*pthread_attr_init)(pthread_attr_t* attributes);
  int (*pthread_attr_setdetachstate)(pthread_attr_t* attributes, int state);
  int (*pthread_attr_setstacksize)(pthread_attr_t* attributes, size_t size);
  int (*pthread_setcancelstate)(int state, int* previous);
  int (*pthread_setcanceltype)(int type, int* previous);
  // The older way of pthread_cleanup_push(). The newer one keeps a jmp_buf in the frame that siglongjmp()
  // does not unlink; this one is called by glibc for every frame that a jump leaves, too.
  void (*cleanup_push)(_pthread_cleanup_buffer* buffer, void (*routine)(void*), void* argument);
  void (*cleanup_pop)(_pthread_cleanup_buffer* buffer, int execute);
  int* (*h_errno_location)();
  const char* single_threaded;  // __libc_single_threaded
};

// Filled by find_all_functions() (shim/real.h), and whole wherever an engine is at hand.
inline constinit late_libc libc{};

// No second thread exists in the process.
inline bool single_threaded() { return *libc.single_threaded != 0; }

// No pthread_cancel() acts inside: an unwinding cancellation that meets a C++ handler aborts the process.
class cancellation_off {
 public:
  cancellation_off() { libc.pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous_); }
  ~cancellation_off() { libc.pthread_setcancelstate(previous_, nullptr); }
  cancellation_off(const cancellation_off&) = delete;
  cancellation_off& operator=(const cancellation_off&) = delete;

 private:
  int previous_ = 0;
};

}  // namespace happy
