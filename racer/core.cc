#include "racer/core.h"

#include "racer/nonblocking_connect.h"
#include "racer/noted_registrations.h"
#include "racer/progress.h"
#include "resolver/clock.h"
#include "resolver/lookup_intent.h"
#include "shim/base/address_filter.h"

#include <fcntl.h>

#include <algorithm>

namespace happy {
namespace {

// True if nothing more is to be expected of it for a race.
bool is_over(core& c, const lookup& l, time_point now) {
  const intent* meant = c.intents.by_id(l.id());
  return l.dropped() || meant == nullptr || l.state().all_answered() || l.is_closed(now) ||
         now >= joins_until(l, *meant);
}

bool take_in(intent& meant, const lookup& l) {
  return l.is_last_resort() ? add_last_resort(meant, l.state())
                            : add_late_answers(meant, l.state());
}

}  // namespace

time_point joins_until(const lookup& l, const intent& meant) {
  return l.is_last_resort() ? l.last_resort_until() : meant.made + late_answer_lifetime;
}

void service_lookups(core& c, time_point now) {
  for (const std::unique_ptr<lookup>& l : c.open_lookups) {
    if (l->dropped() || !l->service(now)) continue;
    intent* meant = c.intents.by_id(l->id());
    if (meant == nullptr || !take_in(*meant, *l)) continue;
    meant->outgrown = meant->partial;
    meant->reserve_failures();
    mark_addresses(c, *meant);
  }
  std::erase_if(c.open_lookups, [&](const auto& l) { return is_over(c, *l, now); });
}

void know_proc(core& c) {
  if (c.proc_is_known) return;
  c.proc_is_known = true;
  look_for_proc(*c.host.pending);
}

void mark_addresses(core& c, const intent& meant) {
  for (const candidate& known : meant.candidates) mark_known(*c.host.pending, known.destination);
}

void bound_open_lookups(core& c) {
  if (c.open_lookups.size() < max_open_lookups) return;
  const auto is_waited_for = [&](std::uint64_t id) {
    bool found = false;
    c.races.for_each_used([&](const pending_race& r) { found = found || r.lookup == id; });
    return found;
  };
  const auto victim = std::find_if(c.open_lookups.begin(), c.open_lookups.end(),
                                   [&](const auto& l) { return !is_waited_for(l->id()); });
  c.open_lookups.erase(victim == c.open_lookups.end() ? c.open_lookups.begin() : victim);
}

void finish_lookup(core& c, std::uint64_t id) {
  const bool listened_to = c.hidden_worker.stays();
  const time_point now = clock_now();
  for (const auto& l : c.open_lookups) {
    if (l->id() != id) continue;
    if (listened_to)
      l->succeed(now);
    else
      l->drop();
  }
}

bool lookup_is_open(core& c, std::uint64_t id, time_point now) {
  return id != 0 && std::any_of(c.open_lookups.begin(), c.open_lookups.end(), [&](const auto& l) {
           return l->id() == id && !l->has_succeeded() && !is_over(c, *l, now);
         });
}

patient_guard::patient_guard(core& c, milliseconds patience)
    : lock_(c.lock), held_(c.lock.try_lock()) {
  for (int queued = 0; !held_ && queued < longest_queue; ++queued) {
    const std::uint32_t seen = c.turns.load(std::memory_order_relaxed);
    held_ = lock_.try_lock_for(patience);
    if (!held_ && c.turns.load(std::memory_order_relaxed) == seen) return;
  }
  if (held_) c.turns.fetch_add(1, std::memory_order_relaxed);
}

namespace {

bool lock_for_fork(core& c) {
  constexpr int patience_ms = 200;
  for (int waited_ms = 0; !c.lock.try_lock(); ++waited_ms) {
    if (waited_ms == patience_ms) return false;
    real->poll(nullptr, 0, 1);
  }
  return true;
}

// The thread has no race left, and waits for the next.
bool worker_is_idle(core& c) {
  bool idle = c.hidden_worker.is_the_second();
  c.races.for_each_used([&](const pending_race& r) { idle = idle && !is_watched(r); });
  return idle;
}

}  // namespace

bool fork_prepare() {
  core& c = the_core();
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool locked = lock_for_fork(c);
  // A program that has no threads is not to be taken for one that has: Python 3.12 warns whoever forks then.
  if (locked && worker_is_idle(c)) {
    c.hidden_worker.dismiss();
    c.lock.unlock();
    c.hidden_worker.wait_until_gone();
    locked = lock_for_fork(c);
  }
  if (!locked) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return false;
  }
  // The child is not known to live shorter than this process, and nobody lifts the veil for it.
  c.races.for_each_used([&](pending_race& r) {
    const int flags = r.veiled != 0 ? real->fcntl(r.fd, F_GETFD) : FD_CLOEXEC;
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) abandon(c, r, "a child may hold the socket");
  });
  c.mask_before_fork = before;
  return true;
}

void fork_parent() {
  core& c = the_core();
  const sigset_t before = c.mask_before_fork;
  c.lock.unlock();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void fork_child() {
  core& c = the_core();
  c.hidden_worker.forget();
  c.has_rehearsed = false;
  c.races.for_each_used([&](pending_race& r) { c.races.release(r); });
  count_pending(c);
  // A fork in a signal handler may have interrupted malloc(), and a lookup of another thread may have been
  // in the middle of anything: nothing is freed, and what was running is left as it is.
  for (running_lookup& r : c.running_lookups)
    [[maybe_unused]] const name_resolution* left = r.work.release();
  c.running_lookups.clear();
  for (const auto& l : c.open_lookups) l->drop();
  c.notes.clear();  // the parent writes them
  c.has_notes = false;
  c.translator.close_sockets();
  fork_parent();
}

}  // namespace happy
