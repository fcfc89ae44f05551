#include "shim/socket_hold.h"

#include <fcntl.h>

#include <atomic>
#include <utility>

#include "shim/base/guards.h"
#include "shim/base/hidden_numbers.h"
#include "shim/base/raw_syscall.h"
#include "shim/base/real_functions.h"
#include "shim/socket_cookie.h"

namespace happy {
namespace {

// The numbers of all threads' holds, for a forked child; 0: free. Of more at once than this it keeps some.
constinit std::atomic<int> holds[64]{};

void list(int number) {
  for (std::atomic<int>& place : holds) {
    int free = 0;
    if (place.load(std::memory_order_relaxed) == 0 && place.compare_exchange_strong(free, number))
      return;
  }
}

void strike(int number) {
  for (std::atomic<int>& place : holds) {
    int listed = number;
    if (place.load(std::memory_order_relaxed) == number && place.compare_exchange_strong(listed, 0))
      return;
  }
}

void close_number(int number) { raw_syscall(SYS_close, number); }

}  // namespace

void socket_hold::take(int fd) {
  cookie_ = cookie_of(fd);
  if (cookie_ == 0) return;  // to close a copy of a file drops the process' locks on it
  errno_saver keep;
  const int number = real->fcntl(fd, F_DUPFD_CLOEXEC, first_hidden_fd);
  if (number < 0) return;
  list(number);
  if (cookie_of(number) == cookie_ && leaves_headroom(number)) {
    number_ = number;
    return;
  }
  strike(number);
  close_number(number);
}

void socket_hold::release_if_behind(int fd) {
  if (number_ == 0) return;
  const std::uint64_t behind_fd = cookie_of(fd);
  const std::uint64_t held = cookie_of(number_);
  // A race may have put another in its place already, behind all its numbers.
  const bool together = held != 0 && behind_fd == held;
  if (!together && held == cookie_) return;  // the fd is another's
  const int number = std::exchange(number_, 0);
  strike(number);
  if (together) close_number(number);  // else the program has taken the number away
}

void socket_hold::give_back() {
  if (number_ == 0) return;
  const int number = std::exchange(number_, 0);
  strike(number);
  if (cookie_of(number) == cookie_) close_number(number);
}

void drop_holds_of_parent() {
  for (std::atomic<int>& place : holds) {
    if (place.load(std::memory_order_relaxed) == 0) continue;  // written to, its page is copied
    const int number = place.exchange(0);
    if (cookie_of(number) != 0) close_number(number);
  }
}

}  // namespace happy
