// What the shim knows of the process it lives in: whether it may act at all, and where its own file is.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>

#include "shim/config.h"

namespace happy {

// May the hooks do anything but call the real function? False before the constructor has run, under
// AT_SECURE, with HAPPY_DISABLE=1, inside the engine, and once the process is exiting.
// Signal-safe; one load and one branch on the common path.
inline bool hooks_live();

// Whether connect() can mean anything to libhappy: false until an engine, hints, a trace or a forced test
// may know of an address.
inline constinit std::atomic<bool> connects_watched{false};
inline void watch_connects() { connects_watched.store(true, std::memory_order_release); }

// Turns the hooks off for good (contract: any trouble means behaving as if absent).
void switch_off();

// While 1, hooks on this thread pass through. Returns the previous mark.
int set_inside(int inside);

// True in a child made by vfork() or a bare clone(): its hooks run in the parent's memory and must
// not change state. One system call.
bool foreign_process();

// The fork handler in the child tells the new owner of the memory.
void adopt_process();

inline constinit environment settings_read{};
inline const environment& process_environment() { return settings_read; }

// libhappy.so as the loader found it: an absolute path, and the file's identity when it was mapped.
struct own_file {
  const char* path;  // shorter than `longest`
  static constexpr std::size_t longest = 4096;
  dev_t device;
  ino_t inode;
  bool known;
};
const own_file& shim_file();

enum class phase : int { early, live, off };
inline constinit std::atomic<phase> current_phase{phase::early};

// initial-exec: touching it never allocates.
inline thread_local constinit int inside_mark = 0;

inline bool hooks_live() {
  return current_phase.load(std::memory_order_acquire) == phase::live && inside_mark == 0;
}

// For a getaddrinfo() that runs before the constructor: does the constructor's work, once.
void initialise_early();

}  // namespace happy
