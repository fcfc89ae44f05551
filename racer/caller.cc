#include "racer/caller.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "racer/proc_files.h"
#include "shim/base/real_functions.h"
#include "shim/base/unique_fd.h"

namespace happy {
namespace {

struct blocked_call {
  long number = -1;  // -1: running
  unsigned long first_argument = 0;
};

// "42 0x3 0x7ffd... ..." or "running".
blocked_call parse(const char* text) {
  blocked_call call;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (end == text || *end != ' ') return call;
  call.number = number;
  call.first_argument = std::strtoul(end + 1, nullptr, 16);
  return call;
}

// Nothing where /proc does not tell.
std::optional<blocked_call> call_of(pid_t thread) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/syscall", static_cast<int>(thread));
  const unique_fd file(real->open(path, O_RDONLY | O_CLOEXEC));
  char text[256];
  const ssize_t length = file.valid() ? real->read(file.get(), text, sizeof text - 1) : -1;
  if (length <= 0) return std::nullopt;
  text[length] = 0;
  return parse(text);
}

bool moves_data(long call) {
  switch (call) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_splice: return true;
    default: return false;
  }
}

bool on_signal_stack() {
  stack_t current{};
  return sigaltstack(nullptr, &current) == 0 && (current.ss_flags & SS_ONSTACK) != 0;
}

}  // namespace

bool is_below(const void* inner, const void* outer) { return inner < outer || on_signal_stack(); }

bool caller_is_waiting(pid_t thread, int fd, const std::atomic<std::uint32_t>* word) {
  const std::optional<blocked_call> call = call_of(thread);
  if (!call) return true;
  if (call->number == SYS_connect) return static_cast<int>(call->first_argument) == fd;
  return call->number == SYS_futex && call->first_argument == reinterpret_cast<unsigned long>(word);
}

bool is_slept_on(const fd_list& fds) {
  constexpr nlink_t most_threads = 64;
  struct stat threads;
  if (real->stat("/proc/self/task", &threads) != 0 || threads.st_nlink > most_threads + 2)
    return false;
  const unique_fd folder = open_hidden("/proc/self/task", O_DIRECTORY);
  bool found = false;
  const auto look_at = [&](int thread) {
    const std::optional<blocked_call> call = call_of(thread);
    found = found || (call && moves_data(call->number) &&
                      std::find(fds.begin(), fds.end(), static_cast<int>(call->first_argument)) !=
                          fds.end());
  };
  return folder.valid() && for_each_number_in(folder, look_at) && found;
}

}  // namespace happy
