#include "shim/process.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>

#include <cerrno>
#include <cstring>

#include "shim/base/guards.h"
#include "shim/base/raw_syscall.h"
#include "shim/loader.h"
#include "shim/raw_stat.h"
#include "shim/real.h"
#include "shim/serving.h"

namespace happy {
namespace {

constinit std::atomic<pid_t> owner{0};
constinit char trace_path[4096]{};  // a program may overwrite its environment (setproctitle)
constinit char prefixes[1024]{};
constinit own_file self{};

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

void keep_prefixes() {
  const char* text = settings_read.pref64;
  if (text == nullptr) return;
  const std::size_t length = std::strlen(text);
  if (length >= sizeof prefixes) return;
  std::memcpy(prefixes, text, length + 1);
  settings_read.settings.pref64 = prefixes;
}

extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start;  // the linker's

// A callback of dl_iterate_phdr(): the name under which the loader has mapped this library.
int find_own_name(dl_phdr_info* library, std::size_t, void* name) {
  if (library->dlpi_addr != reinterpret_cast<ElfW(Addr)>(&__ehdr_start)) return 0;
  *static_cast<const char**>(name) = library->dlpi_name;
  return 1;
}

// `name` below the current folder, or nullptr.
const char* absolute(const char* name) {
  static constinit char path[own_file::longest];
  // The length with the NUL; a folder that cannot be reached begins with "(unreachable)".
  const long used = raw_syscall(SYS_getcwd, reinterpret_cast<long>(path), sizeof path);
  const std::size_t length = std::strlen(name) + 1;
  if (used <= 0 || path[0] != '/' || length > sizeof path - static_cast<std::size_t>(used))
    return nullptr;
  path[used - 1] = '/';
  std::memcpy(path + used, name, length);
  return path;
}

// Remembers which file was mapped as libhappy.so. It is compared again before the engine is loaded
// from beside it: after chroot() the same path may lead into somebody else's directory.
void remember_own_file() {
  const char* name = nullptr;
  dl_iterate_phdr(find_own_name, &name);
  if (name == nullptr || std::strlen(name) >= own_file::longest) return;
  self.path = name[0] == '/' ? name : absolute(name);
  struct stat file;
  if (self.path == nullptr || raw_stat(self.path, file) != 0) return;
  self.device = file.st_dev;
  self.inode = file.st_ino;
  self.known = true;
}

// `program`: argv[0].
void initialise(const char* program, const char* const* variables) {
  if (current_phase.load(std::memory_order_acquire) != phase::early) return;
  errno_saver keep;
  if (!find_connect() || getauxval(AT_SECURE) != 0 || !note_program(program)) return switch_off();
  settings_read = read_environment(variables);
  if (settings_read.disabled) return switch_off();
  keep_trace_target();
  keep_prefixes();
  remember_own_file();
  adopt_process();
  if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
    return switch_off();
  if (settings_read.settings.trace != 0 || settings_read.settings.force != 0) watch_connects();
  current_phase.store(phase::live, std::memory_order_release);
}

// glibc calls constructors as it calls main().
__attribute__((constructor)) void on_load(int count, char** words, char** variables) {
  initialise(count > 0 ? words[0] : nullptr, variables);
}

}  // namespace
}  // namespace happy

// The start files' name for the library, to which pthread_atfork() ties the handlers until it is unloaded:
// this one never is (see the Makefile).
extern "C" __attribute__((visibility("hidden"))) void* const __dso_handle = nullptr;

namespace happy {

void switch_off() { current_phase.store(phase::off, std::memory_order_release); }

int set_inside(int inside) {
  const int previous = inside_mark;
  inside_mark = inside;
  return previous;
}

bool foreign_process() { return raw_getpid() != owner.load(std::memory_order_relaxed); }

void adopt_process() { owner.store(raw_getpid(), std::memory_order_relaxed); }

const own_file& shim_file() { return self; }

void initialise_early() {
  if (current_phase.load(std::memory_order_acquire) != phase::early) return;
  errno_saver keep;
  auto* program = static_cast<char**>(dlsym(RTLD_DEFAULT, "program_invocation_name"));
  auto* variables = static_cast<char***>(dlsym(RTLD_DEFAULT, "environ"));
  if (program != nullptr && variables != nullptr) initialise(*program, *variables);
}

}  // namespace happy
