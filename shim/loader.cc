#include "shim/loader.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "shim/base/abi_version.h"
#include "shim/base/guards.h"
#include "shim/base/raw_syscall.h"
#include "shim/base/real_functions.h"
#include "shim/engine_visit.h"
#include "shim/hints.h"
#include "shim/late_libc.h"
#include "shim/pending.h"
#include "shim/process.h"
#include "shim/raw_stat.h"
#include "shim/real.h"
#include "shim/trace.h"
#include "shim/translated.h"

namespace happy {
namespace {

constexpr char engine_name[] = "libhappy-engine.so";
constexpr std::size_t max_library_name = 64;

struct library_path {
  char text[own_file::longest + max_library_name];
};

// Loading takes 0.2 ms from a warm cache; a disk that needs longer than this gets pass-through.
constexpr long load_patience_ns = 500'000'000;

enum load_state : std::uint32_t { not_tried, loading, ready, refused };

constinit std::atomic<std::uint32_t> state{not_tried};
constinit std::atomic<bool> slow{false};  // somebody has waited in vain
constinit happy_engine engine{};
constinit happy_host host{};

// The engine whose locks before_fork() took, if it was there then: another thread may load it between
// that and the fork. Per thread, because several may fork at once.
thread_local constinit const happy_engine* prepared = nullptr;
thread_local constinit bool unprepared = false;  // it was busy: the child cannot use its memory

int open_unhooked(const char* path, int flags) {
  return static_cast<int>(
      raw_syscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), flags, 0));
}

// Whether the path of libhappy.so still leads to the file that is mapped.
bool own_path_is_true(struct stat& own) {
  const own_file& self = shim_file();
  if (!self.known || raw_stat(self.path, own) != 0) return false;
  return own.st_dev == self.device && own.st_ino == self.inode;
}

// Whoever could write it could also write libhappy.so, and nobody else can.
bool is_trusted(const struct stat& file, const struct stat& own) {
  if (!S_ISREG(file.st_mode) || file.st_uid != own.st_uid) return false;
  if ((file.st_mode & S_IWOTH) != 0) return false;
  const bool group_writable = (file.st_mode & S_IWGRP) != 0;
  return !group_writable || ((own.st_mode & S_IWGRP) != 0 && file.st_gid == own.st_gid);
}

// Whether all of an ELF file is there: mapping one that was cut off (a full disk, an update under way)
// would end in SIGBUS.
bool is_whole(int fd, const struct stat& file) {
  ElfW(Ehdr) header{};
  const long size = static_cast<long>(sizeof header);
  if (raw_syscall(SYS_pread64, fd, reinterpret_cast<long>(&header), size, 0) != size) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  const std::uint64_t end = header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize;
  return end <= static_cast<std::uint64_t>(file.st_size);
}

// Opens a library beside libhappy.so, or returns -1 and says why.
int open_trusted(const char* name, library_path& path, const char*& why) {
  struct stat own;
  why = "libhappy.so is no longer at its path";
  if (!own_path_is_true(own)) return -1;

  std::memcpy(path.text, shim_file().path, std::strlen(shim_file().path) + 1);
  char* slash = std::strrchr(path.text, '/');
  const std::size_t length = std::strlen(name);
  if (length >= max_library_name) return -1;
  std::memcpy(slash + 1, name, length + 1);

  why = "not beside libhappy.so";
  const int fd = open_unhooked(path.text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return -1;
  struct stat file;
  why = "its file is not trusted";
  if (raw_fstat(fd, file) == 0 && is_trusted(file, own)) {
    why = "its file is incomplete";
    if (is_whole(fd, file)) return fd;
  }
  raw_syscall(SYS_close, fd);
  return -1;
}

void write_decimal(char* at, int number) {
  char digits[12];
  int count = 0;
  for (int rest = number; count == 0 || rest != 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  while (count > 0) *at++ = digits[--count];
  *at = 0;
}

// Writes the path that leads to the open file. With the process's number, because /proc/self is another folder to
// each reader: a debugger opens the names of what has been loaded, and would wait for ever on a pipe of its own.
bool path_of_fd(int fd, char (&path)[48]) {
  std::memcpy(path, "/proc/", 6);
  const long length = raw_syscall(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>("/proc/self"),
                                  reinterpret_cast<long>(path + 6), 16);
  if (length <= 0 || length >= 16) return false;
  char* at = path + 6 + length;
  std::memcpy(at, "/fd/", sizeof "/fd/");
  write_decimal(at + 4, fd);
  return true;
}

// From here on the loader knows a library by its own path: who writes a stack down (libbacktrace) reads the files that
// the loader names, and the descriptor will be one of the program's. `path` outlives the process's end.
void rename_library(void* library, library_path& path) {
  link_map* map = nullptr;
  if (libc.dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) map->l_name = path.text;
}

// dlopen through /proc, so that the file that was checked is the file that is loaded.
void* dlopen_fd(int fd, library_path& its) {
  char path[48];
  if (!path_of_fd(fd, path)) return nullptr;
  void* library = libc.dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library != nullptr) rename_library(library, its);
  return library;
}

// Under a limit of address space (RLIMIT_AS) what a library takes is missing to the program afterwards: the engine
// and its first lookup need a third of this.
bool has_room() {
  constexpr long room = 4L << 20;
  const long at =
      raw_syscall(SYS_mmap, 0, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at < 0 && at > -4096) return false;
  raw_syscall(SYS_munmap, at, room);
  return true;
}

void* load_library(const char* name, const char** why) {
  if (!has_room()) {
    *why = "no room in the address space";
    return nullptr;
  }
  static constinit library_path
      kept[2]{};  // the engine's, and that of what it loads itself, once each
  static constinit std::atomic<std::size_t> used{0};
  const std::size_t place = used.fetch_add(1);
  *why = "too many libraries";
  if (place >= std::size(kept)) return nullptr;
  library_path& path = kept[place];
  const int fd = open_trusted(name, path, *why);
  if (fd < 0) return nullptr;
  void* library = dlopen_fd(fd, path);
  raw_syscall(SYS_close, fd);
  if (library == nullptr) *why = "dlopen failed";
  return library;
}

bool start(void* library) {
  auto* entry =
      reinterpret_cast<decltype(&happy_engine_start)>(dlsym(library, "happy_engine_start"));
  if (entry == nullptr) return false;
  host = {.abi_version = abi_version,
          .real = real,
          .settings = &process_environment().settings,
          .set_inside = set_inside,
          .pending = &pending_counts,
          .trace = trace_write,
          .publish_hint = publish_hint,
          .find_hint = find_hint,
          .switch_off = switch_off,
          .note_translated = note_translated,
          .find_translated = find_translated,
          .load_library = load_library,
          .names_are_others = names_are_others() ? 1 : 0};
  return entry(&host, &engine) == 0 && engine.abi_version == abi_version;
}

bool load() {
  const std::uint32_t force = process_environment().settings.force;
  if ((force & HAPPY_FORCE_FAIL_ENGINE) != 0) {
    trace_note("engine_refused", "HAPPY_FORCE=fail:engine");
    return false;
  }
  const char* why = nullptr;
  void* library = load_library(engine_name, &why);
  if (library == nullptr) {
    trace_note("engine_refused", why);
    return false;
  }
  if (names_are_others()) trace_note("lookups_left", "another library has a getaddrinfo()");
  if (start(library)) return true;
  trace_note("engine_refused", "the engine is of another version");
  return false;
}

bool load_uncancelled() {
  cancellation_off uncancelled;
  const int before = set_inside(1);
  const bool loaded = load();
  set_inside(before);
  return loaded;
}

void publish(std::uint32_t outcome) {
  state.store(outcome, std::memory_order_release);
  raw_syscall(SYS_futex, reinterpret_cast<long>(&state), FUTEX_WAKE_PRIVATE, INT32_MAX);
}

void load_here() {
  publish(load_uncancelled() ? ready : refused);
  if (loaded_engine() != nullptr) watch_connects();
}

void* load_in_thread(void* unused) {
  load_here();
  return unused;
}

// dlopen() waits for a lock that its other callers hold while constructors run, and these may wait for the calling
// thread: where there are threads, one of our own does the waiting. False: it cannot be made.
bool load_beside() {
  constexpr std::size_t stack = 256 * 1024;
  const signals_off inherited;
  pthread_attr_t attributes;
  pthread_t ignored;
  return libc.pthread_attr_init(&attributes) == 0 &&
         libc.pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
         libc.pthread_attr_setstacksize(&attributes, stack) == 0 &&
         real->pthread_create(&ignored, &attributes, load_in_thread, nullptr) == 0;
}

void wait_while_loading() {
  if (slow.load(std::memory_order_relaxed)) return;
  timespec until{};
  raw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, reinterpret_cast<long>(&until));
  until.tv_nsec += load_patience_ns;
  if (until.tv_nsec >= 1'000'000'000) {
    until.tv_nsec -= 1'000'000'000;
    ++until.tv_sec;
  }
  long outcome = 0;
  while (outcome != -ETIMEDOUT && state.load(std::memory_order_acquire) == loading) {
    outcome = raw_syscall(SYS_futex, reinterpret_cast<long>(&state), FUTEX_WAIT_BITSET_PRIVATE,
                          loading, reinterpret_cast<long>(&until), 0, FUTEX_BITSET_MATCH_ANY);
  }
  if (outcome == -ETIMEDOUT) slow.store(true, std::memory_order_relaxed);
}

}  // namespace

const happy_engine* loaded_engine() {
  return state.load(std::memory_order_acquire) == ready ? &engine : nullptr;
}

const happy_engine* load_engine() {
  std::uint32_t seen = not_tried;
  if (state.compare_exchange_strong(seen, loading, std::memory_order_acq_rel)) {
    errno_saver keep;
    if (!find_all_functions()) {
      publish(refused);
    } else if (single_threaded() || !load_beside()) {
      load_here();
    }
    seen = loading;
  }
  if (seen == loading) wait_while_loading();
  return loaded_engine();
}

void before_fork() {
  if (hooks_live()) prepare_hints();
  prepared = loaded_engine();
  unprepared = prepared != nullptr && prepared->fork_prepare() == 0;
  if (unprepared) prepared = nullptr;
}

void after_fork_in_parent() {
  if (prepared != nullptr) prepared->fork_parent();
}

void after_fork_in_child() {
  adopt_process();
  if (unprepared) return switch_off();
  if (prepared != nullptr) return prepared->fork_child();
  // A thread of the parent may have been inside dlopen(): its locks are held for ever here.
  if (state.load(std::memory_order_relaxed) != not_tried) {
    state.store(refused, std::memory_order_relaxed);
  }
}

}  // namespace happy
