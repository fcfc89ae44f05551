// The hidden thread that runs races: made by the first one that needs it, gone when none is left.
//
// It holds no descriptor of its own: programs close what they do not know and get the number again for
// something of theirs, and whatever is written to wake a thread would go there.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "shim/base/time.h"

namespace happy {

struct core;
struct watch_list;

struct pending_race;

// Who wants the worker.
struct employer {
  bool single_threaded = false;  // the process has no other thread
  std::optional<std::uint64_t>
      signals;  // blocked by the thread; none: it is known to be able to allocate
  const pending_race* race = nullptr;
  time_point due = time_point::min();  // before that there is nothing to do
};

// Whether the thread has to look after it.
bool is_watched(const pending_race& r);

// Members are guarded by the engine's lock.
class worker {
 public:
  // Starts the thread, or wakes it if it runs and would sleep longer than `by.due`. False if there is none to be had: pthread_create() fails, or
  // may have been called by a signal handler, and it allocates.
  //
  // Context:  gives the engine's lock up while it makes the thread (a sanitizer's pthread_create() waits for
  //           a fork(), whose handlers wait for the lock): any race may have ended when it returns.
  bool engage(core& c, const employer& by);

  // Lets the thread look at its races again, if it runs.
  void wake();

  // One race less. It is noticed within `idle_look` anyhow, and at once where the thread is to end then.
  void wake_to_end() {
    if (leave_at_once_) wake();
  }

  // It runs, and goes on to for a while without a race.
  bool stays() const { return running_ && !leave_at_once_; }

  // The thread is to end as soon as it has no race.
  void dismiss();

  // The thread and the program's only one are all that there are.
  bool is_the_second() const;

  // Waits until a dismissed thread is gone as the kernel counts threads, at most 50 ms: unshare() and
  // setns() look at that. Not under the lock.
  void wait_until_gone();

  // In the child of fork() the thread does not exist.
  void forget();

 private:
  bool make_thread(core& c);
  static void* enter(void* argument);
  void loop(core& c) noexcept;
  bool turn(core& c);
  bool idle(core& c, time_point now);
  void stop(core& c);

  void sleep(watch_list& list, time_point now);

  std::atomic<bool> running_{false};
  std::atomic<std::uint32_t> calls_{0};  // wake() counts here; the thread sleeps on it
  std::atomic<bool> asleep_{false};      // it does, or is about to
  time_point sleeps_until_ = never;      // once it has left the lock
  std::atomic<pid_t> thread_{0};         // its number until the kernel has taken it back
  bool leave_at_once_ = false;           // the process had one thread before this one
  std::uint32_t next_ = 0;               // the race to be looked at first
  time_point idle_since_ = never;
};

}  // namespace happy
