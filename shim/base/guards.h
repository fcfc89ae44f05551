// Scopes that undo themselves: errno, cancellation, signals.
#pragma once

#include <pthread.h>
#include <cerrno>
#include <csignal>

namespace happy {

// The caller's errno survives whatever happens inside.
class errno_saver {
 public:
  errno_saver() : saved_(errno) {}
  ~errno_saver() { errno = saved_; }
  errno_saver(const errno_saver&) = delete;
  errno_saver& operator=(const errno_saver&) = delete;

 private:
  int saved_;
};

// No pthread_cancel() acts inside: an unwinding cancellation that meets a C++ handler aborts the process.
class cancellation_off {
 public:
  cancellation_off() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous_); }
  ~cancellation_off() { pthread_setcancelstate(previous_, nullptr); }
  cancellation_off(const cancellation_off&) = delete;
  cancellation_off& operator=(const cancellation_off&) = delete;

 private:
  int previous_ = 0;
};

// No signal handler runs inside: a handler may call connect(), which takes the engine's lock.
class signals_off {
 public:
  signals_off() {
    sigset_t all;
    sigfillset(&all);  // glibc leaves out its internal setuid and cancel signals
    pthread_sigmask(SIG_SETMASK, &all, &previous_);
  }
  ~signals_off() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }
  signals_off(const signals_off&) = delete;
  signals_off& operator=(const signals_off&) = delete;

 private:
  sigset_t previous_{};
};

}  // namespace happy
