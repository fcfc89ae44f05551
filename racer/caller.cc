#include "racer/caller.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

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

bool on_signal_stack() {
  stack_t current{};
  return sigaltstack(nullptr, &current) == 0 && (current.ss_flags & SS_ONSTACK) != 0;
}

}  // namespace

bool is_below(const void* inner, const void* outer) { return inner < outer || on_signal_stack(); }

bool caller_is_waiting(pid_t thread, int fd, const std::atomic<std::uint32_t>* word) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/syscall", static_cast<int>(thread));
  const unique_fd file(real->open(path, O_RDONLY | O_CLOEXEC));
  char text[256];
  const ssize_t length = file.valid() ? real->read(file.get(), text, sizeof text - 1) : -1;
  if (length <= 0) return true;
  text[length] = 0;
  const blocked_call call = parse(text);
  if (call.number == SYS_connect) return static_cast<int>(call.first_argument) == fd;
  return call.number == SYS_futex && call.first_argument == reinterpret_cast<unsigned long>(word);
}

}  // namespace happy
