#include "shim/socket_hold.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <utility>

#include "shim/base/guards.h"
#include "shim/base/raw_syscall.h"
#include "shim/base/real_functions.h"
#include "shim/socket_cookie.h"

namespace happy {
namespace {

// Out of the way of numbers that the program is about to get, or expects.
constexpr int lowest_number = 24;

// Where fewer are left, other threads may be after them.
constexpr rlim_t numbers_left = 64;

bool is_affordable(int number) {
  rlimit limit{};
  return raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, reinterpret_cast<long>(&limit)) == 0 &&
         limit.rlim_cur > static_cast<rlim_t>(number) + numbers_left;
}

void close_number(int number) { raw_syscall(SYS_close, number); }

}  // namespace

void socket_hold::take(int fd) {
  cookie_ = cookie_of(fd);
  if (cookie_ == 0) return;  // to close a copy of a file drops the process' locks on it
  errno_saver keep;
  const int number = real->fcntl(fd, F_DUPFD_CLOEXEC, lowest_number);
  if (number < 0) return;
  if (cookie_of(number) == cookie_ && is_affordable(number))
    number_ = number;
  else
    close_number(number);
}

void socket_hold::release_if_behind(int fd) {
  if (number_ == 0) return;
  const std::uint64_t behind_fd = cookie_of(fd);
  const std::uint64_t held = cookie_of(number_);
  // A race may have put another in its place already, behind all its numbers.
  if (held != 0 && behind_fd == held)
    close_number(number_);
  else if (held == cookie_)
    return;     // the fd is another's
  number_ = 0;  // or this number is
}

void socket_hold::give_back() {
  if (number_ == 0) return;
  const int number = std::exchange(number_, 0);
  if (cookie_of(number) == cookie_) close_number(number);
}

}  // namespace happy
