#include "shim/process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "shim/base/guards.h"
#include "shim/base/raw_syscall.h"
#include "shim/loader.h"
#include "shim/real.h"
#include "shim/serving.h"

namespace happy {
namespace {

enum class phase : int { early, live, off };

constinit std::atomic<phase> current{phase::early};
constinit std::atomic<pid_t> owner{0};
constinit environment settings_read{};
constinit char trace_path[4096]{};  // a program may overwrite its environment (setproctitle)
constinit own_file self{};

// initial-exec: touching it never allocates.
thread_local constinit int inside_mark = 0;

void keep_trace_target() {
  const char* target = settings_read.trace_target;
  if (target == nullptr) return;
  const std::size_t length = std::strlen(target);
  if (length >= sizeof trace_path) {
    settings_read.trace_target = nullptr;
    settings_read.settings.trace = 0;
    return;
  }
  std::memcpy(trace_path, target, length + 1);
  settings_read.trace_target = trace_path;
}

// Remembers which file was mapped as libhappy.so. It is compared again before the engine is loaded
// from beside it: after chroot() the same path may lead into somebody else's directory.
void remember_own_file() {
  Dl_info info;
  if (dladdr(&self, &info) == 0 || info.dli_fname == nullptr) return;
  std::size_t used = 0;
  if (info.dli_fname[0] != '/') {
    if (getcwd(self.path, sizeof self.path - 1) == nullptr) return;
    used = std::strlen(self.path);
    self.path[used++] = '/';
  }
  const std::size_t length = std::strlen(info.dli_fname);
  if (length >= sizeof self.path - used) return;
  std::memcpy(self.path + used, info.dli_fname, length + 1);
  struct stat file;
  if (stat(self.path, &file) != 0) return;
  self.device = file.st_dev;
  self.inode = file.st_ino;
  self.known = true;
}

__attribute__((constructor)) void on_load() { initialise(); }

}  // namespace

bool hooks_live() {
  return current.load(std::memory_order_acquire) == phase::live && inside_mark == 0;
}

void switch_off() { current.store(phase::off, std::memory_order_release); }

int set_inside(int inside) {
  const int previous = inside_mark;
  inside_mark = inside;
  return previous;
}

bool foreign_process() { return raw_getpid() != owner.load(std::memory_order_relaxed); }

void adopt_process() { owner.store(raw_getpid(), std::memory_order_relaxed); }

const environment& process_environment() { return settings_read; }

const own_file& shim_file() { return self; }

void initialise() {
  if (current.load(std::memory_order_acquire) != phase::early) return;
  errno_saver keep;
  const bool complete = find_hooked_functions();
  if (!complete || getauxval(AT_SECURE) != 0) return switch_off();
  settings_read = read_environment(environ);
  if (settings_read.disabled) return switch_off();
  keep_trace_target();
  remember_own_file();
  note_program();
  adopt_process();
  if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
    return switch_off();
  current.store(phase::live, std::memory_order_release);
}

}  // namespace happy
