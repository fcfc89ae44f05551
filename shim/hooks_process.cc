// Calls that change what the process is: the hidden thread must not be in their way, or must not live on
// under rules that were not made for it.

#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>

#include "shim/base/raw_syscall.h"
#include "shim/engine_visit.h"
#include "shim/late_function.h"
#include "shim/loader.h"
#include "shim/pending.h"
#include "shim/process.h"

namespace happy {
namespace {

using prctl_function = int (*)(int, unsigned long, unsigned long, unsigned long,
                               unsigned long) noexcept;
using chroot_function = int (*)(const char*);
using capset_function = int (*)(void*, const void*);

constinit late_function<decltype(&::unshare)> real_unshare{"unshare"};
constinit late_function<decltype(&::setns)> real_setns{"setns"};
constinit late_function<chroot_function> real_chroot{"chroot"};
constinit late_function<capset_function> real_capset{"capset"};
constinit late_function<prctl_function> real_prctl{"prctl"};
constinit late_function<const char*> libc_single_threaded{"__libc_single_threaded"};

// Races are given up and the worker ends, or 50 ms have passed. `network_changes`: what is known of
// names belongs to another network now.
void quiesce(bool network_changes) {
  const happy_engine* engine = loaded_engine();
  if (engine == nullptr || !hooks_live() || foreign_process()) return;
  errno_saver keep;
  engine_visit visit;
  engine->quiesce(network_changes ? 1 : 0);
}

// A program that puts itself into a sandbox has listed the system calls that it means to make: from here
// on it gets the real functions alone.
void enter_sandbox() {
  quiesce(false);
  if (!foreign_process()) switch_off();
}

// Landlock binds the calling thread and those that it makes from now on. Another one that there is already would let a
// race of ours go where this one may not.
void enter_landlock() {
  const char* alone = libc_single_threaded.get();
  if (alone == nullptr || *alone == 0) enter_sandbox();
}

// A filter that is no filter, or flags where none are allowed, only ask whether the kernel knows the call: Firefox and
// libseccomp do, in processes that never get a sandbox.
bool is_sandbox_prctl(int option, unsigned long mode, unsigned long filter) {
  return option == PR_SET_SECCOMP && mode != 0 && (mode != SECCOMP_MODE_FILTER || filter != 0);
}

bool is_sandbox_syscall(long number, long operation, long flags, long filter) {
  if (number != SYS_seccomp) return false;
  // The kernel takes 32 bits of either, and a caller of syscall() may leave anything above them.
  const auto mode = static_cast<unsigned>(operation);
  return mode == SECCOMP_SET_MODE_STRICT ? static_cast<unsigned>(flags) == 0 && filter == 0
                                         : mode == SECCOMP_SET_MODE_FILTER && filter != 0;
}

// libuv closes by number, so that no cancellation point is passed.
void look_at_closing(long number, long first, long second, long flags) {
  const auto from = static_cast<unsigned>(first);
  const auto to = static_cast<unsigned>(second);
  if (number == SYS_close) note_closing(from, from);
#ifdef SYS_dup2
  if (number == SYS_dup2 && from != to) note_closing(to, to);
#endif
  if (number == SYS_dup3 && from != to) note_closing(to, to);
  if (number == SYS_close_range && (flags & CLOSE_RANGE_CLOEXEC) == 0) note_closing(from, to);
}

// The same calls as below and elsewhere, made without libc's functions for them (libcap).
void look_at_syscall(long number, long first, long second, long third) {
  if (number == SYS_io_uring_setup)
    __atomic_store_n(&pending_counts.uses_io_uring, 1, __ATOMIC_RELAXED);
  if (number == SYS_execve || number == SYS_execveat) note_exec();
  if (number == SYS_sendmsg) note_sending(reinterpret_cast<const msghdr*>(second));
  if (number == SYS_capset || number == SYS_chroot) quiesce(false);
  if (number == SYS_setns) quiesce(true);
  if (number == SYS_unshare) quiesce((first & CLONE_NEWNET) != 0);
  if (is_sandbox_syscall(number, first, second, third)) enter_sandbox();
}

constexpr bool is_looked_at(long number) {
  switch (number) {
    case SYS_io_uring_setup:
    case SYS_execve:
    case SYS_execveat:
    case SYS_sendmsg:
    case SYS_capset:
    case SYS_chroot:
    case SYS_setns:
    case SYS_unshare:
    case SYS_seccomp:
    case SYS_close:
#ifdef SYS_dup2
    case SYS_dup2:
#endif
    case SYS_dup3:
    case SYS_close_range:
    case SYS_epoll_ctl:
    case SYS_setsockopt:
    case SYS_landlock_restrict_self: return true;
    default: return false;
  }
}

// A syscall() may return a whole word.
long answer(long raw) { return raw >= 0 || raw < -4095 ? raw : as_libc(raw); }

[[gnu::noinline]] long looked_at_syscall(long number, const long (&values)[6]) {
  look_at_syscall(number, values[0], values[1], values[2]);
  look_at_closing(number, values[0], values[1], values[2]);
  if (number == SYS_epoll_ctl && epoll_watched()) {
    return change_epoll(static_cast<int>(values[0]), static_cast<int>(values[1]),
                        static_cast<int>(values[2]), reinterpret_cast<epoll_event*>(values[3]));
  }
  if (number == SYS_setsockopt) note_option_change();
  const long result =
      raw_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
  if (number == SYS_setsockopt) note_option_change();
  if (number == SYS_landlock_restrict_self && result == 0) enter_landlock();
  return answer(result);
}

}  // namespace
}  // namespace happy

extern "C" {

__attribute__((visibility("default"))) int unshare(int flags) noexcept {
  happy::quiesce((flags & CLONE_NEWNET) != 0);
  return happy::real_unshare.get()(flags);
}

__attribute__((visibility("default"))) int setns(int fd, int type) noexcept {
  happy::quiesce(true);
  return happy::real_setns.get()(fd, type);
}

__attribute__((visibility("default"))) int chroot(const char* path) noexcept {
  happy::quiesce(false);
  return happy::real_chroot.get()(path);
}

__attribute__((visibility("default"))) int capset(void* header, const void* data) {
  happy::quiesce(false);
  return happy::real_capset.get()(header, data);
}

__attribute__((visibility("default"))) int prctl(int option, ...) noexcept {
  va_list arguments;
  va_start(arguments, option);
  unsigned long values[4];
  for (unsigned long& value : values) value = va_arg(arguments, unsigned long);
  va_end(arguments);
  if (happy::is_sandbox_prctl(option, values[0], values[1])) happy::enter_sandbox();
  return happy::real_prctl.get()(option, values[0], values[1], values[2], values[3]);
}

// Forwarded untouched: six values in registers, whatever they mean.
__attribute__((visibility("default"))) long syscall(long number, ...) noexcept {
  va_list arguments;
  va_start(arguments, number);
  long values[6];
  for (long& value : values) value = va_arg(arguments, long);
  va_end(arguments);
  if (happy::is_looked_at(number)) [[unlikely]]
    return happy::looked_at_syscall(number, values);
  return happy::answer(
      happy::raw_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]));
}

}  // extern "C"
