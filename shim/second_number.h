// A second number for the socket that a thread connects, so that another thread that closes the first meanwhile, and
// makes something of its own behind it, does not have that connected, nor the call fail: the real connect(), for which
// the kernel looks the number up, comes some 50 us after the program has called. From then on the kernel has the socket,
// and the second number goes when the first does.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shim/pending.h"

namespace happy {

// Calls of connect() that have one at once; beyond this number, and where they would take more than a sixteenth
// of what RLIMIT_NOFILE leaves, the first number alone is used.
inline constexpr std::size_t max_second_numbers = 128;

// Of those that are made and it is not known yet whether they will be used, about so many at once: of hundreds of
// threads most wait here for a processor.
inline constexpr int max_unkept_numbers = 16;

// One of the table.
struct held_number {
  std::atomic<int> number;  // 0: free; negative: taken, and closed or not made yet
  std::atomic<int> first;
  std::atomic<pid_t> thread;
  std::atomic<std::uint64_t> cookie;
};

class second_number {
 public:
  // None as yet.
  constexpr second_number() = default;
  ~second_number() { give_back(); }
  second_number(const second_number&) = delete;
  second_number& operator=(const second_number&) = delete;

  // One for what is behind `fd`, which own() takes over; negative: there is none. errno survives.
  //
  // Context:  one system call; signal-safe.
  static int make(int fd);
  void own(int number);

  // Whether connect() can use it in the place of `fd`. errno survives.
  //
  // Context:  three system calls; signal-safe.
  bool keep(int fd);

  // Of one that is kept.
  int get() const;
  std::uint64_t cookie() const;  // SO_COOKIE of the socket

  // Closes it, if nobody else has; errno survives. No cancellation point; signal-safe.
  void give_back();

 private:
  int number_ = -1;  // not kept yet
  held_number* held_ = nullptr;
};

// How many there are: one load.
inline std::uint32_t second_numbers() {
  return __atomic_load_n(&pending_counts.second_numbers, __ATOMIC_ACQUIRE);
}

// `first` to `last` are about to mean something else. Second numbers of these go, where the kernel has the socket: a
// call that a signal handler interrupts is made anew by its number, and is to find as little as bare. errno survives.
void close_second_numbers(unsigned first, unsigned last);

// Around fork(), in the thread that forks: a child has those of no thread but this one.
void note_forking_thread();
void drop_second_numbers_of_parent();

}  // namespace happy
