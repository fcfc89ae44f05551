#include "racer/open_files.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "racer/noted_registrations.h"
#include "racer/proc_files.h"
#include "resolver/clock.h"
#include "resolver/guarded_socket.h"
#include "shim/base/raw_syscall.h"
#include "shim/base/real_functions.h"
#include "shim/base/unique_fd.h"

namespace happy {
namespace {

// Where /proc does not say which numbers are open all of these are asked: the kernel gives the lowest that is free.
constexpr rlim_t numbers_asked = 4096;

template <typename Function>
void for_each_number(Function&& visit) {
  rlimit limit{};
  const rlim_t end = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : numbers_asked;
  for (int number = 0; number < static_cast<int>(std::min(end, numbers_asked)); ++number)
    visit(number);
}

// Calls `visit(number)` for each open descriptor, and perhaps for some that are not open. False: some are left out.
template <typename Function>
bool for_each_fd(Function&& visit, openers who = openers::others) {
  const unique_fd folder = open_hidden("/proc/self/fd", O_DIRECTORY, who);
  if (folder.valid()) return for_each_number_in(folder, visit);
  for_each_number(visit);
  return true;
}

// "tfd:        5 events:       1d data:                5  pos:0 ..."
bool parse_entry(std::string_view line, epoll_entry& out) {
  if (!line.starts_with("tfd:")) return false;
  char text[160]{};
  std::memcpy(text, line.data(), std::min(line.size(), sizeof text - 1));
  unsigned events = 0;
  unsigned long long data = 0;
  if (std::sscanf(text, "tfd: %d events: %x data: %llx pos:%*d ino:%lx", &out.fd, &events, &data,
                  &out.inode) < 3) {
    return false;
  }
  out.events = events;
  out.data = data;
  return true;
}

// Feeds the lines of a file of /proc to `visit`; the longest line there is far below the buffer.
template <typename Function>
bool for_each_line(const char* path, Function&& visit) {
  const unique_fd file = open_hidden(path, 0);
  if (!file.valid()) return false;
  char buffer[1024];
  std::size_t kept = 0;
  for (;;) {
    const ssize_t size = real->read(file.get(), buffer + kept, sizeof buffer - kept);
    if (size <= 0) return size == 0;
    const std::size_t end = kept + static_cast<std::size_t>(size);
    std::size_t begin = 0;
    for (std::size_t i = kept; i < end; ++i) {
      if (buffer[i] != '\n') continue;
      visit(std::string_view(buffer + begin, i - begin));
      begin = i + 1;
    }
    kept = end - begin;
    if (kept == sizeof buffer) return false;
    std::memmove(buffer, buffer + begin, kept);
  }
}

// Whether the descriptor is no socket. It is the sockets' own layer that answers, never a file system, which may be
// that of a server that is gone.
bool is_no_socket(std::uint64_t cookie) { return cookie == 0 && errno == ENOTSOCK; }

// Files that are none answer EINVAL, what the program has closed meanwhile EBADF. They are not read: it would cost more.
bool is_epoll_set(int fd, int outside) {
  return real->epoll_ctl(fd, EPOLL_CTL_DEL, outside, nullptr) == 0 ||
         (errno != EINVAL && errno != EBADF);
}

// Calls `visit(entry)` for what is registered in the set. False: /proc does not say.
template <typename Function>
bool for_each_entry(int set, Function&& visit) {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/self/fdinfo/%d", set);
  return for_each_line(path, [&](std::string_view line) {
    epoll_entry entry;
    if (!parse_entry(line, entry)) return;
    entry.set = set;
    visit(entry);
  });
}

unsigned long inode_of(const fd_list& fds) {
  struct stat file {};
  return !fds.empty() && real->fstat(fds[0], &file) == 0 ? file.st_ino : 0;
}

bool is_known(const fd_list& fds, int fd) {
  return std::find(fds.begin(), fds.end(), fd) != fds.end();
}

// Adds the entry, if it is one for the file. False: see find_epoll_entries().
bool collect(const epoll_entry& e, const fd_list& fds, unsigned long inode, epoll_entry_list& out) {
  const bool known = is_known(fds, e.fd);
  if (e.inode == 0 || inode == 0) return !known || out.push_back(e);
  return e.inode != inode || (known && out.push_back(e));
}

// Whether the file behind `fd` is registered in the set under this number.
enum class registered : std::uint8_t { yes, no, unknown };

registered is_registered(int set, int fd) {
  const pid_t self = raw_getpid();
  const kcmp_epoll_slot slot{
      .efd = static_cast<std::uint32_t>(set), .tfd = static_cast<std::uint32_t>(fd), .toff = 0};
  const long order =
      raw_syscall(SYS_kcmp, self, self, KCMP_EPOLL_TFD, fd, reinterpret_cast<long>(&slot));
  // What the program has closed meanwhile, or put another file in the place of, has nothing.
  const bool answered = order >= 0 || order == -ENOENT || order == -EBADF || order == -EINVAL;
  if (!answered) return registered::unknown;
  return order == 0 ? registered::yes : registered::no;
}

// What a set has of the file, where /proc does not say. False: see find_epoll_entries().
bool collect_noted(int set, const fd_list& fds, epoll_entry_list& out) {
  bool movable = true;
  for (const int fd : fds) {
    const registered there = is_registered(set, fd);
    if (there == registered::no) continue;
    const std::optional<epoll_entry> entry = noted_registration(set, fd);
    movable = movable && there == registered::yes && entry && out.push_back(*entry);
  }
  return movable;
}

// What a set has of the file. False: see find_epoll_entries().
bool collect_from_set(int set, const fd_list& fds, epoll_entry_list& out) {
  const epoll_entry_list before = out;
  const unsigned long inode = inode_of(fds);
  bool movable = true;
  const bool told = for_each_entry(
      set, [&](const epoll_entry& entry) { movable = collect(entry, fds, inode, out) && movable; });
  if (told) return movable;
  out = before;
  return collect_noted(set, fds, out);
}

}  // namespace

class open_files {
 public:
  // False: some are left out.
  bool find_aliases(std::uint64_t wanted, int hidden, fd_list& out, bool& room) {
    refresh();
    const socket like{wanted, -1};
    const auto [first, last] = std::equal_range(sockets_.begin(), sockets_.end(), like, by_cookie);
    for (auto s = first; s != last; ++s) {
      // The program may have closed it meanwhile, and opened something else.
      if (s->number != hidden && socket_cookie(s->number) == wanted)
        room = out.push_back(s->number) && room;
    }
    return readable_;
  }

  bool find_entries(const fd_list& fds, int outside, epoll_entry_list& out) {
    refresh();
    read_entries(outside);
    bool movable = true;
    const unsigned long inode = inode_of(fds);
    for (const epoll_entry& e : entries_) movable = collect(e, fds, inode, out) && movable;
    for (const int set : untold_) movable = collect_noted(set, fds, out) && movable;
    return movable;
  }

 private:
  struct socket {
    std::uint64_t cookie;
    int number;
  };
  static bool by_cookie(const socket& a, const socket& b) { return a.cookie < b.cookie; }

  void refresh() {
    constexpr duration lifetime = milliseconds(20);
    if (clock_now() < valid_until_) return;
    sockets_.clear();
    others_.clear();
    entries_.clear();
    untold_.clear();
    readable_ = for_each_fd([&](int number) {
      const std::uint64_t cookie = socket_cookie(number);
      if (cookie != 0)
        sockets_.push_back({cookie, number});
      else if (is_no_socket(cookie))
        others_.push_back(number);
    });
    std::sort(sockets_.begin(), sockets_.end(), by_cookie);
    valid_until_ = clock_now() + lifetime;
  }

  // Once after each refresh().
  void read_entries(int outside) {
    for (const int number : others_) {
      if (!is_epoll_set(number, outside)) continue;
      const std::size_t before = entries_.size();
      if (for_each_entry(number, [&](const epoll_entry& e) { entries_.push_back(e); })) continue;
      entries_.resize(before);
      untold_.push_back(number);
    }
    others_.clear();
  }

  std::vector<socket> sockets_;
  std::vector<int> others_;  // not yet asked whether they are epoll sets
  std::vector<epoll_entry> entries_;
  std::vector<int> untold_;  // sets that are not in /proc
  bool readable_ = false;
  time_point valid_until_ = time_point::min();
};

namespace {

open_files_batch* batch = nullptr;

bool is_same_file_in(pid_t process, int fd) {
  const pid_t self = raw_getpid();
  return raw_syscall(SYS_kcmp, self, process, KCMP_FILE, fd, fd) == 0;
}

// Asks for one that has ended, and leaves it as it is.
bool has_no_children() {
  return raw_syscall(SYS_waitid, P_ALL, 0, 0, WEXITED | WNOHANG | WNOWAIT | __WALL, 0) == -ECHILD;
}

}  // namespace

open_files_batch::open_files_batch() { batch = this; }
open_files_batch::~open_files_batch() { batch = nullptr; }

open_files& open_files_batch::files() {
  if (!files_) files_ = std::make_unique<open_files>();
  return *files_;
}

bool find_aliases(int fd, int hidden, fd_list& out) {
  out.clear();
  const std::uint64_t wanted = socket_cookie(fd);
  if (wanted == 0) return false;
  bool room = true;
  bool readable = true;
  if (batch != nullptr) {
    readable = batch->files().find_aliases(wanted, hidden, out, room);
  } else {
    readable = for_each_fd([&](int number) {
      if (number != hidden && socket_cookie(number) == wanted) room = out.push_back(number) && room;
    });
  }
  return readable && room && std::find(out.begin(), out.end(), fd) != out.end();
}

bool is_shared_with_relatives(int fd, pid_t thread) {
  const auto parent = static_cast<pid_t>(raw_syscall(SYS_getppid));
  if (parent > 0 && is_same_file_in(parent, fd)) return true;
  if (has_no_children()) return false;
  bool shared = false;
  char path[48];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/children", thread);
  const unique_fd file = open_hidden(path, 0);
  char text[1024];  // the first hundred children of the thread
  const ssize_t size = file.valid() ? real->read(file.get(), text, sizeof text - 1) : -1;
  if (size <= 0) return false;
  text[size] = 0;
  for (char* at = text; *at != 0;) {
    char* end = nullptr;
    const long child = std::strtol(at, &end, 10);
    if (end == at) break;
    shared = shared || is_same_file_in(static_cast<pid_t>(child), fd);
    at = end;
  }
  return shared;
}

bool find_epoll_entries(const fd_list& fds, int outside, epoll_entry_list& out) {
  out.clear();
  if (batch != nullptr) return batch->files().find_entries(fds, outside, out);
  bool movable = true;
  const bool readable = for_each_fd([&](int number) {
    if (!is_no_socket(socket_cookie(number)) || !is_epoll_set(number, outside)) return;
    movable = collect_from_set(number, fds, out) && movable;
  });
  return readable && movable;
}

bool find_copies(int fd, int hidden, int outside, fd_list& numbers, epoll_entry_list& entries,
                 openers who) {
  if (batch != nullptr)
    return find_aliases(fd, hidden, numbers) && find_epoll_entries(numbers, outside, entries);
  numbers.clear();
  entries.clear();
  const std::uint64_t wanted = socket_cookie(fd);
  if (wanted == 0) return false;
  constexpr std::size_t most_others = 64;  // of more it is asked a second time which they are
  bounded_vector<int, most_others> others;
  bool room = true;
  bool whole = true;
  const bool readable = for_each_fd(
      [&](int number) {
        const std::uint64_t cookie = socket_cookie(number);
        if (is_no_socket(cookie)) whole = others.push_back(number) && whole;
        if (cookie == wanted && number != hidden) room = numbers.push_back(number) && room;
      },
      who);
  if (!readable || !room || !is_known(numbers, fd)) return false;
  if (!whole) return find_epoll_entries(numbers, outside, entries);
  bool movable = true;
  for (const int number : others) {
    if (is_epoll_set(number, outside))
      movable = collect_from_set(number, numbers, entries) && movable;
  }
  return movable;
}

}  // namespace happy
