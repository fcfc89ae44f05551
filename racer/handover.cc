#include "racer/handover.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include <cerrno>
#include <iterator>

#include "racer/caller.h"
#include "racer/core.h"
#include "racer/open_files.h"
#include "racer/registrations.h"
#include "racer/synthesis.h"
#include "shim/base/raw_syscall.h"
#include "shim/base/real_functions.h"

namespace happy {
namespace {

// O_CLOEXEC or 0; negative if the kernel does not say.
int close_on_exec_of(int fd) {
  const int flags = real->fcntl(fd, F_GETFD);
  if (flags < 0) return flags;
  return (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0;
}

void forget(epoll_entry_list& entries, int fd) {
  for (std::size_t i = entries.size(); i-- > 0;) {
    if (entries[i].fd == fd) entries.erase(i);
  }
}

// What the kernel tells of a socket that has connected, to an owner who asked for a signal of his own
// choice: sent by hand, as the winner connected before it had this owner. Sent to this thread's number it
// goes to the process; values that the kernel alone may use could not be sent to another.
void send_connected_signal(int fd, int number) {
  siginfo_t info{};
  info.si_signo = number;
  info.si_code = POLL_OUT;
  info.si_band = POLLOUT | POLLWRNORM | POLLWRBAND;
  info.si_fd = fd;
  raw_syscall(SYS_rt_sigqueueinfo, raw_gettid(), number, reinterpret_cast<long>(&info));
}

// The kernel names the number at which O_ASYNC was set: it is set again at the program's. The end of the
// original must not be told as an error of the number that shows the winner. (With plain SIGIO, and with
// other owners than this process, the shutdown is what wakes them: its signal says no more than that.)
void move_signals(const pending_race& r) {
  const int flags = real->fcntl(r.fd, F_GETFL);
  if (flags < 0 || (flags & O_ASYNC) == 0) return;
  real->fcntl(r.fd, F_SETFL, flags & ~O_ASYNC);
  real->fcntl(r.fd, F_SETFL, flags);
  f_owner_ex owner{};
  const int number = real->fcntl(r.fd, F_GETSIG);
  if (!r.won || number <= 0 || real->fcntl(r.fd, F_GETOWN_EX, &owner) != 0) return;
  if (owner.type != F_OWNER_PID || owner.pid != raw_getpid()) return;
  real->fcntl(r.original.fd, F_SETFL, flags & ~O_ASYNC);
  send_connected_signal(r.fd, number);
}

// One that was shut down, its caller having been told, connects no more.
bool is_still_open(const pending_race& r) { return !r.published && r.original_dup.is_ours(); }

// A veiled original has its filter already.
bool may_still_connect(const pending_race& r) {
  return is_still_open(r) && r.veiled != r.cookie && is_connecting(r.original.fd);
}

// While one lives, an original that is still connecting cannot connect: the answer to its SYN is dropped.
// Answered in vain, the other end repeats its part of the handshake, should the original go on.
class standstill {
 public:
  explicit standstill(const pending_race& r)
      : fd_(r.original.fd), holds_(may_still_connect(r) && drop_what_arrives(fd_)) {}
  ~standstill() {
    if (holds_) take_what_arrives(fd_);
  }
  standstill(const standstill&) = delete;
  standstill& operator=(const standstill&) = delete;

  // The original is not the program's any more.
  void for_good() { holds_ = false; }

 private:
  int fd_;
  bool holds_;
};

// A socket of ours that no epoll set has ever had. Only before there are any is it a number of ours for the program's.
int outsider(const pending_race& r) {
  if (r.winner_socket.valid()) return r.winner_socket.get();
  return r.attempts.empty() ? r.original_dup.get() : r.attempts[0].socket.get();
}

// A thread in send() or recv() sleeps on the original, where that blocks.
bool may_be_slept_on(const pending_race& r) {
  const int flags = r.single_threaded ? O_NONBLOCK : real->fcntl(r.fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

bool find_everyone(const pending_race& r, fd_list& aliases, epoll_entry_list& entries) {
  return !is_shared_with_relatives(r.fd, r.thread) &&
         find_copies(r.fd, r.original_dup.get(), outsider(r), aliases, entries) &&
         !(may_be_slept_on(r) && is_slept_on(aliases));
}

// The numbers of a socket, the FD_CLOEXEC of each, and the epoll sets that have it.
struct copies {
  fd_list numbers;
  bounded_vector<int, max_aliases> flags;
  epoll_entry_list entries;
};

bool read_flags(copies& of) {
  for (const int number : of.numbers) {
    const int close_on_exec = close_on_exec_of(number);
    if (close_on_exec < 0) return false;
    of.flags.push_back(close_on_exec);
  }
  return true;
}

void note_replacement(std::uint64_t before, std::uint64_t after) {
  happy_pending& pending = *the_core().host.pending;
  const std::size_t at = pending.replacements++ % std::size(pending.replaced);
  __atomic_store_n(&pending.replaced[at][0], before, __ATOMIC_SEQ_CST);
  __atomic_store_n(&pending.replaced[at][1], after, __ATOMIC_SEQ_CST);
}

// The new socket goes behind every number, and into the sets, which do not have the old one any more. False: the
// program's own number is not among them.
bool exchange(const pending_race& r, copies& of) {
  note_replacement(r.cookie, r.winner_socket.cookie());
  bool done = false;
  for (std::size_t i = 0; i < of.numbers.size(); ++i) {
    const int number = of.numbers[i];
    // To find them has taken its time, and a thread that closes one of them waits for us so long only.
    if (socket_cookie(number) != r.cookie) {
      forget(of.entries, number);
      continue;
    }
    const bool replaced = real->dup3(r.winner_socket.get(), number, of.flags[i]) >= 0;
    if (number == r.fd) done = replaced;
  }
  register_again(of.entries);
  return done;
}

}  // namespace

bool can_hand_over(const pending_race& r) {
  fd_list aliases;
  epoll_entry_list entries;
  return find_everyone(r, aliases, entries);
}

bool hand_over(pending_race& r) {
  if (socket_cookie(r.fd) != r.cookie || !r.winner_socket.is_ours()) return false;
  copies of_original;
  if (!find_everyone(r, of_original.numbers, of_original.entries) || !read_flags(of_original))
    return false;
  keep_translation(the_core(), r);
  standstill original(r);
  if (!unregister(of_original.entries)) return false;
  if (is_still_open(r) && has_connected(r.original.fd)) {
    register_again(of_original.entries);
    return false;
  }
  const bool done = exchange(r, of_original);
  if (done) original.for_good();
  if (done) move_signals(r);
  return done;
}

bool replace_unconnected(pending_race& r) {
  copies of_original;
  const openers who = r.single_threaded ? openers::none : openers::others;
  if (!find_copies(r.fd, -1, outsider(r), of_original.numbers, of_original.entries, who) ||
      !read_flags(of_original) || !unregister(of_original.entries)) {
    return false;
  }
  const bool done = exchange(r, of_original);
  if (done) move_signals(r);
  return done;
}

}  // namespace happy
