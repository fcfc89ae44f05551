#include "shim/forced.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <type_traits>

#include "shim/process.h"
#include "shim/trace.h"

namespace happy {
namespace {

decltype(happy_real::open) true_open = nullptr;
decltype(happy_real::stat) true_stat = nullptr;
decltype(happy_real::epoll_ctl) true_epoll_ctl = nullptr;

int no_thread(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) { return EAGAIN; }

int no_dup3(int, int, int) {
  errno = EBADF;
  return -1;
}

int no_socket(int, int, int) {
  errno = EMFILE;
  return -1;
}

// HAPPY_FAIL_CALL and this one count the engine's own calls only: what the program does is not to be disturbed.
bool is_call_of_engine() {
  const int inside = set_inside(1);
  set_inside(inside);
  return inside != 0;
}

int no_epoll(int set, int operation, int fd, epoll_event* event) {
  if (!is_call_of_engine()) return true_epoll_ctl(set, operation, fd, event);
  errno = ENOMEM;
  return -1;
}

// Sets errno.
bool is_in_proc(const char* path) {
  if (std::strncmp(path, "/proc/", 6) != 0) return false;
  errno = ENOENT;
  return true;
}

int no_proc_stat(const char* path, struct stat* out) {
  return is_in_proc(path) ? -1 : true_stat(path, out);
}

int no_proc(const char* path, int flags, ...) {
  if (is_in_proc(path)) return -1;
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return true_open(path, flags, mode);
}

// HAPPY_FAIL_CALL.
constinit happy_real unharmed{};
constinit std::atomic<int> calls_left{0};

bool is_the_one() {
  if (!is_call_of_engine()) return false;
  if (calls_left.fetch_sub(1, std::memory_order_relaxed) != 1) return false;
  trace_note("call_failed", "HAPPY_FAIL_CALL");
  return true;
}

// A function that takes the place of the one in `Slot`, with its prototype.
template <auto Slot, typename Function = std::remove_reference_t<decltype(unharmed.*Slot)>>
struct failing;

template <auto Slot, typename Result, typename... Arguments>
struct failing<Slot, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    if (!is_the_one()) return (unharmed.*Slot)(arguments...);
    errno = ENOMEM;
    return static_cast<Result>(-1);
  }
};

int failing_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) {
  return is_the_one() ? EAGAIN : unharmed.pthread_create(thread, attributes, body, argument);
}

int failing_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  if (!is_the_one()) return unharmed.open(path, flags, mode);
  errno = EMFILE;
  return -1;
}

int failing_fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (!is_the_one()) return unharmed.fcntl(fd, command, argument);
  errno = EMFILE;
  return -1;
}

template <auto... Slots>
void make_failing(happy_real& table) {
  ((table.*Slots = failing<Slots>::call), ...);
}

}  // namespace

void fail_one_call(happy_real& table, int which) {
  if (which == 0) return;
  unharmed = table;
  calls_left = which;
  make_failing<&happy_real::connect, &happy_real::socket, &happy_real::bind, &happy_real::shutdown,
               &happy_real::dup3, &happy_real::getsockopt, &happy_real::setsockopt,
               &happy_real::getsockname, &happy_real::epoll_ctl, &happy_real::poll,
               &happy_real::fstat, &happy_real::read, &happy_real::recvfrom,
               &happy_real::sigaction>(table);
  table.pthread_create = failing_thread;
  table.open = failing_open;
  table.fcntl = failing_fcntl;
}

void force_failures(happy_real& table, std::uint32_t force) {
  if ((force & HAPPY_FORCE_FAIL_THREAD) != 0) table.pthread_create = no_thread;
  if ((force & HAPPY_FORCE_FAIL_DUP3) != 0) table.dup3 = no_dup3;
  if ((force & HAPPY_FORCE_FAIL_SOCKET) != 0) table.socket = no_socket;
  if ((force & HAPPY_FORCE_FAIL_EPOLL) != 0) {
    true_epoll_ctl = table.epoll_ctl;
    table.epoll_ctl = no_epoll;
  }
  if ((force & HAPPY_FORCE_FAIL_PROC) != 0) {
    true_open = table.open;
    true_stat = table.stat;
    table.open = no_proc;
    table.stat = no_proc_stat;
  }
}

}  // namespace happy
