// Who else in this process, and beyond, holds the socket that a race would replace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "racer/proc_files.h"
#include "shim/base/bounded_vector.h"

namespace happy {

// A socket is known under one number, seldom under two or three; a program that keeps more than this
// many copies of a connecting socket keeps the original.
inline constexpr std::size_t max_aliases = 16;
using fd_list = bounded_vector<int, max_aliases>;

class open_files;

// While one lives, /proc is read once for all that is asked below: reading it costs as much as the process has
// files, and a thousand sockets may be replaced together. What was read is believed for 20 ms.
//
// Context:  one at a time, with the engine's lock, which the hook of epoll_ctl() takes too; allocates when
//           first asked.
class open_files_batch {
 public:
  open_files_batch();
  ~open_files_batch();
  open_files_batch(const open_files_batch&) = delete;
  open_files_batch& operator=(const open_files_batch&) = delete;

  open_files& files();

 private:
  std::unique_ptr<open_files> files_;
};

// The numbers under which the file behind `fd` is open, `fd` among them, `hidden` (ours) left out.
// False: there are too many, or some may be missing. Without /proc numbers of 4096 and more are not looked at.
//
// Context:  reads /proc/self/fd, one getsockopt() per open file; does not block.
bool find_aliases(int fd, int hidden, fd_list& out);

// True if the parent, or a child that `thread` has made, has the same file behind the same number: a socket
// that was inherited, or that a child was made to use. What they have cannot be replaced from here.
bool is_shared_with_relatives(int fd, pid_t thread);

// One entry of an epoll set.
struct epoll_entry {
  int set = -1;  // the set's descriptor
  int fd = -1;
  std::uint32_t events = 0;
  std::uint64_t data = 0;
  unsigned long inode = 0;  // of its file; 0: an old kernel does not say
};

// Entries of one socket: a program waits for it in one set, seldom in two.
inline constexpr std::size_t max_epoll_entries = 32;
using epoll_entry_list = bounded_vector<epoll_entry, max_epoll_entries>;

// Every entry for one of `fds`, the numbers of one file, in any epoll set of this process, as the kernel has it:
// entries of another file that was known by such a number are left out. `outside`: a socket under a number under
// which no set has it. False: there are too many, or one was made under a number that the program has closed since,
// and cannot be taken out, or one is there that neither /proc nor a note (noted_registrations.h) tells of.
//
// Context:  reads /proc/self/fdinfo of each epoll set, which costs as much as the set is long.
bool find_epoll_entries(const fd_list& fds, int outside, epoll_entry_list& out);

// Both of the above, by reading /proc once.
bool find_copies(int fd, int hidden, int outside, fd_list& numbers, epoll_entry_list& entries,
                 openers who = openers::others);

}  // namespace happy
