#include "shim/trace.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "shim/base/guards.h"
#include "shim/base/hidden_numbers.h"
#include "shim/base/raw_syscall.h"
#include "shim/process.h"
#include "shim/raw_stat.h"

namespace happy {
namespace {

struct target {
  std::atomic<int> fd{-1};
  std::atomic<dev_t> device{0};
  std::atomic<ino_t> inode{0};
  std::atomic<bool> opened{false};
  std::atomic<std::uint32_t> dropped{0};
  std::atomic<bool> told_refused{false};
};
constinit target output{};

bool is_standard_error(const char* path) { return path[0] == '-' && path[1] == 0; }

int raw_open(const char* path, int flags) {
  return static_cast<int>(raw_syscall(
      SYS_openat, AT_FDCWD, reinterpret_cast<long>(path),
      flags | O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
}

// Moves `fd` out of the program's way; -1 if that fails.
int move_away(int fd) {
  if (fd < 0) return -1;
  const long moved = raw_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, first_hidden_fd);
  raw_syscall(SYS_close, fd);
  return moved < 0 ? -1 : static_cast<int>(moved);
}

int open_target(bool first_time) {
  const char* path = process_environment().trace_target;
  if (is_standard_error(path)) {
    if (!first_time) return -1;  // the program closed it; its number 2 may be anything now
    return static_cast<int>(
        raw_syscall(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, first_hidden_fd));
  }
  return move_away(raw_open(path, first_time ? O_CREAT : 0));
}

// Whether `fd` is (still) the file that was opened: programs close descriptors that are not theirs,
// and the number may carry their own data by now.
bool is_target(int fd) {
  struct stat file;
  return fd >= 0 && raw_fstat(fd, file) == 0 && file.st_dev == output.device &&
         file.st_ino == output.inode;
}

bool accept_first(int fd) {
  struct stat file;
  if (fd < 0 || raw_fstat(fd, file) != 0) return false;
  if (!is_standard_error(process_environment().trace_target) && !S_ISREG(file.st_mode))
    return false;
  output.device = file.st_dev;
  output.inode = file.st_ino;
  return true;
}

// The descriptor to write to, or -1.
int target_fd() {
  const int held = output.fd.load(std::memory_order_acquire);
  if (held >= 0 && is_target(held)) return held;
  const bool first_time = !output.opened.exchange(true);
  const int fd = open_target(first_time);
  if (first_time ? accept_first(fd) : is_target(fd)) {
    output.fd.store(fd, std::memory_order_release);
    return fd;
  }
  if (fd >= 0) raw_syscall(SYS_close, fd);
  return -1;
}

bool would_block(int fd) {
  pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
  timespec at_once{};
  return raw_syscall(SYS_ppoll, reinterpret_cast<long>(&wait), 1, reinterpret_cast<long>(&at_once),
                     0, 0) != 1;
}

constexpr std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }

// A write to a pipe without reader, or beyond RLIMIT_FSIZE, raises a signal: it is ours, not the
// program's, and is taken back, unless one was pending before.
class write_signals_off {
 public:
  write_signals_off() {
    raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, reinterpret_cast<long>(&ours),
                reinterpret_cast<long>(&mask_before_), sizeof ours);
    raw_syscall(SYS_rt_sigpending, reinterpret_cast<long>(&pending_before_), sizeof ours);
  }
  ~write_signals_off() {
    const std::uint64_t raised = ours & ~pending_before_;
    timespec at_once{};
    raw_syscall(SYS_rt_sigtimedwait, reinterpret_cast<long>(&raised), 0,
                reinterpret_cast<long>(&at_once), sizeof raised);
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&mask_before_), 0,
                sizeof ours);
  }
  write_signals_off(const write_signals_off&) = delete;
  write_signals_off& operator=(const write_signals_off&) = delete;

 private:
  static constexpr std::uint64_t ours = bit_of(SIGPIPE) | bit_of(SIGXFSZ);
  std::uint64_t mask_before_ = 0;
  std::uint64_t pending_before_ = 0;
};

bool write_line(const char* line, std::size_t length) {
  const int fd = target_fd();
  if (fd < 0 || would_block(fd)) return false;
  const write_signals_off quiet;
  return raw_syscall(SYS_write, fd, reinterpret_cast<long>(line), static_cast<long>(length)) ==
         static_cast<long>(length);
}

// HAPPY_* values that were not taken, in a line before all others.
[[gnu::noinline]] void tell_refused_once() {
  const environment& e = process_environment();
  if (e.refused == 0 || output.told_refused.exchange(true, std::memory_order_relaxed)) return;
  json_line line = trace_line("setting_refused");
  line.text("reason", e.first_refused).number("values", e.refused).finish();
  write_line(line.data(), line.size());
}

std::int64_t now_us() {
  timespec now{};
  raw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, reinterpret_cast<long>(&now));
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
}

// Lines are large: one at a time on a stack that may be small.
[[gnu::noinline]] void tell_dropped(std::uint32_t lines) {
  json_line told = trace_line("dropped");
  told.number("lines", lines).finish();
  if (!write_line(told.data(), told.size()))
    output.dropped.fetch_add(lines, std::memory_order_relaxed);
}

}  // namespace

json_line trace_line(const char* event) { return {event, now_us(), raw_getpid(), raw_gettid()}; }

void trace_write(const char* line, std::size_t length) {
  errno_saver keep;
  tell_refused_once();
  if (!write_line(line, length)) {
    output.dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::uint32_t lost = output.dropped.exchange(0, std::memory_order_relaxed);
  if (lost != 0) tell_dropped(lost);
}

void trace_note(const char* event, const char* reason) {
  if (!trace_on()) return;
  errno_saver keep;
  json_line line = trace_line(event);
  line.text("reason", reason).finish();
  trace_write(line.data(), line.size());
}

void trace_pass_line(const char* call, pass_reason reason) {
  errno_saver keep;
  json_line line = trace_line("pass");
  line.text("call", call).text("reason", to_text(reason)).finish();
  trace_write(line.data(), line.size());
}

}  // namespace happy
