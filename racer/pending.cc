#include "racer/pending.h"

#include <limits.h>
#include <linux/futex.h>

#include "shim/base/raw_syscall.h"

namespace happy {
namespace {

void reset(pending_race& r) {
  r.fd = -1;
  r.frame = nullptr;
  r.program_timeout = {};
  r.program_deadline = never;
  r.borrowed_timeout = false;
  r.lookup = 0;
  r.swap = false;
  r.non_blocking = r.clocked = false;
  r.sockets.clear();
  r.veiled = 0;
  r.forgotten_at = never;
  r.known.candidates.clear();
  r.failures.clear();
  r.armed = r.active = false;
  r.active_from = never;
  r.original = {};
  r.original_dup.reset();
  r.attempts.clear();
  r.won = r.lost = r.published = r.handed_over = false;
  r.winner_socket.reset();
}

}  // namespace

pending_race* race_pool::acquire() {
  for (pending_race& r : records_) {
    if (r.used) continue;
    r.used = true;
    return &r;
  }
  if (records_.size() == max_races) return nullptr;
  pending_race& r = records_.emplace_back();
  r.index = static_cast<std::uint32_t>(records_.size() - 1);
  r.used = true;
  return &r;
}

void race_pool::prepare() {
  if (!records_.empty()) return;
  if (pending_race* r = acquire()) release(*r);
}

pending_race* race_pool::find(std::uint32_t index, std::uint32_t generation) {
  if (index >= records_.size()) return nullptr;
  pending_race& r = records_[index];
  return r.used && r.generation == generation ? &r : nullptr;
}

void race_pool::release(pending_race& r) {
  reset(r);
  ++r.generation;
  r.used = false;
  r.word.store(r.open_word(), std::memory_order_release);
  wake_caller(r);
}

void wake_caller(pending_race& r) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(&r.word), FUTEX_WAKE_PRIVATE, INT_MAX);
}

}  // namespace happy
