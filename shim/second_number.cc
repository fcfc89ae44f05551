#include "shim/second_number.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "shim/base/raw_syscall.h"
#include "shim/base/real_functions.h"
#include "shim/engine_calls.h"
#include "shim/socket_cookie.h"

namespace happy {
namespace {

// Out of the way of numbers that the program is about to get, or expects.
constexpr int lowest_number = 24;

// Of the descriptors that are left.
constexpr long share = 16;

constexpr int taken = -1;
constexpr std::size_t page = 4096;

constinit held_number table[max_second_numbers]{};
constinit std::atomic<int> unkept{0};
constinit pid_t forking_thread = 0;

// Each thread begins to search elsewhere.
held_number* take_slot() {
  const auto begin = reinterpret_cast<std::uintptr_t>(&signals_are_off) / page;
  for (std::size_t i = 0; i < max_second_numbers; ++i) {
    held_number& slot = table[(begin + i) % max_second_numbers];
    int free = 0;
    if (slot.number.load(std::memory_order_relaxed) == 0 &&
        slot.number.compare_exchange_strong(free, taken, std::memory_order_acq_rel)) {
      return &slot;
    }
  }
  return nullptr;
}

void close_raw(int number) { raw_syscall(SYS_close, number); }

// Whether the program has enough descriptors left, of which `number` is the lowest free one.
bool is_affordable(int number) {
  rlimit limit{};
  if (raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, reinterpret_cast<long>(&limit)) != 0)
    return false;
  const long left = static_cast<long>(std::min<rlim_t>(limit.rlim_cur, INT_MAX)) - number;
  return second_numbers() < left / share;
}

// Not where the number shows something else by now: the program may close, and use again, what is not its own. (A race
// that puts another socket in the program's place puts it behind all its numbers.)
void close_if_ours(const held_number& slot, int number) {
  const std::uint64_t now = cookie_of(number);
  if (now == slot.cookie.load(std::memory_order_relaxed) ||
      now == cookie_of(slot.first.load(std::memory_order_relaxed))) {
    close_raw(number);
  }
}

// False: it has been closed already.
bool take_number(held_number& slot, int& number) {
  number = slot.number.load(std::memory_order_acquire);
  return number > 0 &&
         slot.number.compare_exchange_strong(number, taken, std::memory_order_acq_rel);
}

bool is_of(const held_number& slot, unsigned first, unsigned last) {
  const auto number = static_cast<unsigned>(slot.first.load(std::memory_order_relaxed));
  return slot.number.load(std::memory_order_acquire) > 0 && first <= number && number <= last;
}

// Whether the kernel has the thread's call. One that runs a signal handler on top of it, or that has left it, is this.
bool is_inside(const held_number& slot) {
  const pid_t thread = slot.thread.load(std::memory_order_relaxed);
  if (thread == raw_gettid()) return true;
  bool inside = false;
  tell_engine([&](const happy_engine& engine) {
    inside = engine.is_in_connect(thread, slot.number.load(std::memory_order_relaxed)) != 0;
    // When the engine was told before, the call may not have been there yet.
    const auto first = static_cast<unsigned>(slot.first.load(std::memory_order_relaxed));
    if (inside) engine.fds_closing(first, first);
  });
  return inside;
}

}  // namespace

int second_number::make(int fd) {
  if (unkept.load(std::memory_order_relaxed) >= max_unkept_numbers) return -1;
  errno_saver keep;
  return real->fcntl(fd, F_DUPFD_CLOEXEC, lowest_number);
}

void second_number::own(int number) {
  if (number < 0) return;
  number_ = number;
  unkept.fetch_add(1, std::memory_order_relaxed);
  __atomic_fetch_add(&pending_counts.second_numbers, 1, __ATOMIC_ACQ_REL);
}

bool second_number::keep(int fd) {
  if (number_ < 0) return false;
  const std::uint64_t socket = cookie_of(number_);
  const bool kept = socket != 0 && is_affordable(number_);
  held_ = kept ? take_slot() : nullptr;
  if (held_ == nullptr) {
    give_back();
    return false;
  }
  held_->first.store(fd, std::memory_order_relaxed);
  held_->thread.store(raw_gettid(), std::memory_order_relaxed);
  held_->cookie.store(socket, std::memory_order_relaxed);
  held_->number.store(std::exchange(number_, -1), std::memory_order_release);
  unkept.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

int second_number::get() const { return held_->number.load(std::memory_order_relaxed); }

std::uint64_t second_number::cookie() const {
  return held_->cookie.load(std::memory_order_relaxed);
}

void second_number::give_back() {
  if (number_ >= 0) {
    close_raw(std::exchange(number_, -1));
    unkept.fetch_sub(1, std::memory_order_relaxed);
  } else if (held_ != nullptr) {
    held_number& slot = *std::exchange(held_, nullptr);
    int number = 0;
    if (take_number(slot, number)) close_if_ours(slot, number);
    slot.number.store(0, std::memory_order_release);
  } else {
    return;
  }
  __atomic_fetch_sub(&pending_counts.second_numbers, 1, __ATOMIC_ACQ_REL);
}

void close_second_numbers(unsigned first, unsigned last) {
  for (held_number& slot : table) {
    int number = 0;
    if (is_of(slot, first, last) && is_inside(slot) && take_number(slot, number))
      close_if_ours(slot, number);
  }
}

void note_forking_thread() { forking_thread = raw_gettid(); }

void drop_second_numbers_of_parent() {
  if (second_numbers() == 0) return;
  const pid_t self = raw_gettid();
  std::uint32_t kept = 0;
  for (held_number& slot : table) {
    if (slot.number.load(std::memory_order_relaxed) != 0 &&
        slot.thread.load(std::memory_order_relaxed) == forking_thread) {
      slot.thread.store(self, std::memory_order_relaxed);
      ++kept;
      continue;
    }
    int number = 0;
    if (take_number(slot, number)) close_if_ours(slot, number);
    slot.number.store(0, std::memory_order_relaxed);
  }
  unkept.store(0, std::memory_order_relaxed);
  __atomic_store_n(&pending_counts.second_numbers, kept, __ATOMIC_RELEASE);
}

}  // namespace happy
