// What the shim knows of the process it lives in: whether it may act at all, and where its own file is.
#pragma once

#include <sys/stat.h>

#include "shim/config.h"

namespace happy {

// May the hooks do anything but call the real function? False before the constructor has run, under
// AT_SECURE, with HAPPY_DISABLE=1, inside the engine, and once the process is exiting.
// Signal-safe; one load and one branch on the common path.
bool hooks_live();

// Turns the hooks off for good (contract: any trouble means behaving as if absent).
void switch_off();

// While 1, hooks on this thread pass through. Returns the previous mark.
int set_inside(int inside);

// True in a child made by vfork() or a bare clone(): its hooks run in the parent's memory and must
// not change state. One system call.
bool foreign_process();

// The fork handler in the child tells the new owner of the memory.
void adopt_process();

const environment& process_environment();

// libhappy.so as the loader found it: an absolute path, and the file's identity when it was mapped.
struct own_file {
  char path[4096];
  dev_t device;
  ino_t inode;
  bool known;
};
const own_file& shim_file();

// The constructor's work, also done by a getaddrinfo() that runs before the constructor.
void initialise();

}  // namespace happy
