#include "racer/worker.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/prctl.h>

#include <algorithm>
#include <vector>

#include "racer/core.h"
#include "racer/history_notes.h"
#include "racer/nonblocking_connect.h"
#include "racer/open_files.h"
#include "racer/progress.h"
#include "resolver/clock.h"
#include "shim/base/handler_sign.h"
#include "shim/base/raw_syscall.h"

namespace happy {

struct watched {
  std::uint32_t race;
  std::uint32_t generation;
};

// What one turn waits for.
struct watch_list {
  std::vector<pollfd> fds;
  std::vector<watched> owners;  // of fds, as far as they belong to races: same index
  time_point deadline = never;
  std::uint32_t calls = 0;  // those to wake() that this turn has seen
};

namespace {

// Enough for c-ares' receive buffers and a trace line, with room; a program's static TLS comes on top.
constexpr std::size_t stack_size = 256 * 1024;

// A thousand races need more time than a connect() that begins may wait for the lock: others get it after so
// long, and for so long.
constexpr duration longest_hold = milliseconds(20);
constexpr duration breath = milliseconds(1);

// A process that had threads already keeps its worker for the next race that soon follows.
constexpr duration idle_patience = std::chrono::seconds(1);

// Meanwhile it looks whether it is the last thread, which would keep a process alive that has ended. It looks
// as often while it has races: most of them end without a word to it.
constexpr duration idle_look = milliseconds(50);

// A caller that runs a signal handler is waited for: its own attempt must not end while it may still
// leave connect() by siglongjmp(), which would be noticed. One that jumps without glibc would not.
constexpr duration caller_patience = std::chrono::seconds(30);
constexpr duration caller_retry = milliseconds(10);

// While sockets are watched a call to wake() is noticed after this long at most.
constexpr duration longest_poll = milliseconds(10);

// Whether the process has two threads, as the kernel counts them. Asked without opening a file: a program with
// threads may just be counting on the lowest free number.
bool are_two_threads() {
  struct stat threads;
  constexpr nlink_t folder_itself = 2;
  return real->stat("/proc/self/task", &threads) == 0 && threads.st_nlink == folder_itself + 2;
}

// Whether main has called pthread_exit() and all other threads have ended: the leader is a zombie, which
// has no program any more, and it and this thread are all that is counted.
bool is_last_thread() {
  char ignored = 0;
  const long program =
      raw_syscall(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>("/proc/self/exe"),
                  reinterpret_cast<long>(&ignored), 1);
  return program == -ENOENT && are_two_threads();
}

void activate_if_due(core& c, pending_race& r, time_point now) {
  if (!r.armed || r.active || now < std::max(r.active_from, c.races.full_until())) return;
  if (!adopt_original(r)) return abandon(c, r, "the socket cannot be copied");
  r.active = c.races.reserve(r, r.original_dup.get(), now);
  if (!r.active) r.original_dup.reset();
}

// Gives the result to the caller; false if the caller is not where it could take it.
bool deliver(core& c, pending_race& r, time_point now) {
  const delivery outcome = publish(r);
  if (outcome == delivery::told) return true;
  if (outcome == delivery::impossible)
    abandon(c, r, "the fd cannot be replaced");
  else if (now - r.won_at > caller_patience)
    abandon(c, r, "the caller has left");
  return !r.used;
}

// Moves one race on. The time at which it wants to be looked at again.
time_point tend(core& c, pending_race& r, time_point now) {
  if (r.driven) return never;
  if (now < r.rests_until) return r.rests_until;
  if (r.non_blocking) return tend_non_blocking(c, r, now);
  activate_if_due(c, r, now);
  if (!r.used) return never;
  if (r.published) return insist(r, now);
  if (!r.active) return r.armed ? std::max(r.active_from, c.races.full_until()) : never;
  time_point next = never;
  if (!r.won && !r.lost) {
    refresh_plan(c, r, now);
    next = advance(c, r, now);
    if (!r.used) return never;
  }
  if (!r.won && !r.lost) return next;
  if (!deliver(c, r, now)) return now + caller_retry;
  return r.used && r.published ? insist(r, now) : never;
}

void watch_races(core& c, watch_list& list) {
  c.races.for_each_used([&](const pending_race& r) {
    if (r.driven) return;
    for (const hidden_attempt& a : r.attempts) {
      list.fds.push_back({.fd = a.socket.get(), .events = POLLOUT, .revents = 0});
      list.owners.push_back({r.index, r.generation});
    }
  });
}

void watch_lookups(core& c, watch_list& list, time_point now) {
  for (const auto& l : c.open_lookups) {
    for (const pollfd& fd : l->poll_set()) list.fds.push_back(fd);
    list.deadline = std::min(list.deadline, l->deadline(now));
    if (const intent* meant = c.intents.by_id(l->id())) {
      list.deadline = std::min(list.deadline, joins_until(*l, *meant));
    }
  }
}

void report(core& c, const watch_list& list, time_point now) {
  for (std::size_t i = 0; i < list.owners.size(); ++i) {
    if (list.fds[i].revents == 0) continue;
    pending_race* r = c.races.find(list.owners[i].race, list.owners[i].generation);
    if (r != nullptr && !r->won && !r->lost) report_attempt(*r, list.fds[i].fd, now);
  }
}

}  // namespace

void worker::wake() {
  calls_.fetch_add(1, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst))
    raw_syscall(SYS_futex, reinterpret_cast<long>(&calls_), FUTEX_WAKE_PRIVATE, 1);
}

void worker::sleep(watch_list& list, time_point now) {
  if (!list.fds.empty()) {
    const time_point until = std::min(list.deadline, now + longest_poll);
    real->poll(list.fds.data(), list.fds.size(), wait_ms(until, now));
    return;
  }
  const auto left = std::max(list.deadline - now, duration(0));
  const timespec limit{.tv_sec = left.count() / 1'000'000'000,
                       .tv_nsec = left.count() % 1'000'000'000};
  asleep_.store(true, std::memory_order_seq_cst);
  raw_syscall(SYS_futex, reinterpret_cast<long>(&calls_), FUTEX_WAIT_PRIVATE, list.calls,
              list.deadline == never ? 0 : reinterpret_cast<long>(&limit));
  asleep_.store(false, std::memory_order_relaxed);
}

bool is_watched(const pending_race& r) { return !r.driven && (r.armed || r.active); }

bool worker::engage(core& c, const employer& by) {
  if (running_) {
    if (by.due < sleeps_until_) wake();
    return true;
  }
  if (by.signals && may_be_in_handler(*by.signals)) return false;
  running_ = true;
  leave_at_once_ = by.single_threaded;
  idle_since_ = never;
  sleeps_until_ = never;
  c.lock.unlock();
  const bool made = make_thread(c);
  c.lock.lock();
  if (made) {
    wake();
    return true;
  }
  running_ = false;
  c.races.for_each_used([&](pending_race& r) {  // those that have counted on it meanwhile
    if (&r != by.race && is_watched(r)) abandon(c, r, "no worker");
  });
  return false;
}

bool worker::make_thread(core& c) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack_size);
  pthread_t thread;
  const int failed = real->pthread_create(&thread, &attributes, enter, &c);
  pthread_attr_destroy(&attributes);
  return failed == 0;
}

void worker::dismiss() {
  leave_at_once_ = true;
  wake();
}

bool worker::is_the_second() const { return (running_ || thread_ != 0) && are_two_threads(); }

void worker::wait_until_gone() {
  constexpr duration patience = milliseconds(50);
  constexpr int step_ms = 1;
  const time_point until = clock_now() + patience;
  while (clock_now() < until) {
    pid_t thread = thread_.load(std::memory_order_acquire);
    const bool gone = thread == 0 || raw_syscall(SYS_tgkill, raw_getpid(), thread, 0) == -ESRCH;
    if (gone) thread_.compare_exchange_strong(thread, 0);  // the number may become another's
    if (gone && !running_) return;
    real->poll(nullptr, 0, step_ms);
  }
}

void worker::forget() {
  thread_ = 0;
  running_ = false;
}

void* worker::enter(void* argument) {
  core& c = *static_cast<core*>(argument);
  c.host.set_inside(1);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  c.hidden_worker.thread_ = raw_gettid();
  raw_syscall(SYS_prctl, PR_SET_NAME, reinterpret_cast<long>("libhappy"));
  c.hidden_worker.loop(c);
  return nullptr;
}

void worker::loop(core& c) noexcept {
  try {
    while (turn(c)) save_history(c);
    save_history(c);
  } catch (...) {  // no memory: every race goes on as if libhappy were absent
    core_guard guard(c);
    c.races.for_each_used([&](pending_race& r) {
      if (is_watched(r)) c.races.release(r);
    });
    count_pending(c);
    stop(c);
  }
}

// One turn: move every race on, then sleep until something happens. False: the thread is to end.
bool worker::turn(core& c) {
  watch_list list;
  time_point now;
  {
    core_guard guard(c);
    now = clock_now();
    list.calls = calls_.load(std::memory_order_acquire);
    service_lookups(c, now);
    c.translator.listen(now);
    bool busy = false;
    const open_files_batch handed_over_together;
    bool too_long = false;
    const time_point began = now;
    next_ = c.races.visit_used_from(next_, [&](pending_race& r) {
      list.deadline = std::min(list.deadline, tend(c, r, now));
      busy = busy || (r.used && is_watched(r));
      now = clock_now();
      too_long = now - began > longest_hold;
      return !too_long;
    });
    busy = busy || too_long;
    if (too_long) list.deadline = now + breath;
    // A process that had threads already has its late answers read, too.
    busy = busy || (!leave_at_once_ && !c.open_lookups.empty());
    if (!busy && idle(c, now)) return false;
    if (!leave_at_once_ || !busy) list.deadline = std::min(list.deadline, now + idle_look);
    if (busy) idle_since_ = never;
    watch_races(c, list);
    watch_lookups(c, list, now);
    sleeps_until_ = list.deadline;
  }
  save_history(c);
  sleep(list, now);

  core_guard guard(c);
  report(c, list, clock_now());
  return true;
}

// Nothing to race: true if the thread shall end now.
bool worker::idle(core& c, time_point now) {
  if (idle_since_ == never) idle_since_ = now;
  const bool stay = !leave_at_once_ && now - idle_since_ < idle_patience && !is_last_thread();
  if (stay) return false;
  stop(c);
  return true;
}

void worker::stop(core& c) {
  c.translator.stop_listening();
  running_ = false;
}

}  // namespace happy
