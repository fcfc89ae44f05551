// The hidden thread that runs races: made by the first one that needs it, gone when none is left.
//
// It holds no descriptor of its own: programs close what they do not know and get the number again for
// something of theirs, and whatever is written to wake a thread would go there.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "shim/base/time.h"

namespace happy {

struct core;
struct watch_list;

// Members are guarded by the engine's lock.
class worker {
 public:
  // Starts the thread, or wakes it if it runs. False if there is none to be had: then nothing can be
  // raced.
  //
  // Context:  allocates a stack; not for signal handlers unless the worker already runs.
  bool engage(core& c, bool process_was_single_threaded);

  // Lets the thread look at its races again, if it runs.
  void wake();

  // The thread is to end as soon as it has no race.
  void dismiss();

  // Waits until a dismissed thread is gone as the kernel counts threads, at most 50 ms: unshare() and
  // setns() look at that. Not under the lock.
  void wait_until_gone() const;

  // In the child of fork() the thread does not exist.
  void forget();

 private:
  static void* enter(void* argument);
  void loop(core& c) noexcept;
  bool turn(core& c);
  bool idle(time_point now);
  void stop();

  void sleep(watch_list& list, time_point now);

  std::atomic<bool> running_{false};
  std::atomic<std::uint32_t> calls_{0};  // wake() counts here; the thread sleeps on it
  std::atomic<pid_t> thread_{0};         // its number until the kernel has taken it back
  bool leave_at_once_ = false;           // the process had one thread before this one
  time_point idle_since_ = never;
};

}  // namespace happy
