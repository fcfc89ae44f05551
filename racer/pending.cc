#include "racer/pending.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <utility>

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
  r.on_their_own = false;
  r.forgotten_at = never;
  r.known.as_mapped = false;
  r.known.candidates.clear();
  r.failures.clear();
  r.driven = r.deaf = r.orphaned = r.taken_back = r.named_troubled = false;
  r.armed = r.active = false;
  r.active_from = never;
  r.rests_until = time_point::min();
  r.original = {};
  r.original_dup.reset();
  r.attempts.clear();
  r.won = r.lost = r.published = r.handed_over = false;
  r.winner_socket.reset();
}

// The dup, and an attempt for each further address; of many addresses few are tried at a time.
int descriptors_of(const pending_race& r) {
  constexpr int most_attempts = 3;
  const int others = static_cast<int>(r.known.candidates.size()) - 1;
  return 1 + std::clamp(others, 1, most_attempts);
}

}  // namespace

pending_race* race_pool::acquire() {
  pending_race* free = nullptr;
  for (std::uint32_t i = 0; i < made_ && free == nullptr; ++i) {
    if (!at(i).used) free = &at(i);
  }
  if (free == nullptr) free = make();
  if (free == nullptr) return nullptr;
  free->used = true;
  ++used_;
  return free;
}

pending_race* race_pool::make() {
  if (made_ == max_races) return nullptr;
  block*& home = blocks_[made_ / block_size];
  if (home == nullptr) {
    void* memory =
        mmap(nullptr, sizeof(block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    home = static_cast<block*>(memory);
  }
  auto* r = new (&(*home)[made_ % block_size]) pending_race;
  r->index = made_++;
  return r;
}

pending_race* race_pool::find(std::uint32_t index, std::uint32_t generation) {
  if (index >= made_) return nullptr;
  pending_race& r = at(index);
  return r.used && r.generation == generation ? &r : nullptr;
}

bool race_pool::reserve(pending_race& r, int lowest_free, time_point now) {
  constexpr int share = 4;
  constexpr duration look_again = std::chrono::seconds(1);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  const int all = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, INT_MAX));
  const int of_program = std::max(lowest_free - reserved_, 0);
  const int wanted = descriptors_of(r);
  if (reserved_ + wanted > (all - of_program) / share) {
    full_until_ = now + look_again;
    return false;
  }
  r.reserved = wanted;
  reserved_ += wanted;
  return true;
}

void race_pool::give_back(pending_race& r) {
  if (r.reserved > 0) full_until_ = time_point::min();
  reserved_ -= std::exchange(r.reserved, 0);
}

void race_pool::release(pending_race& r) {
  give_back(r);
  const bool slept_on = r.slept_on;
  reset(r);
  ++r.generation;
  r.used = r.slept_on = false;
  --used_;
  r.word.store(r.open_word(), std::memory_order_release);
  if (slept_on) wake_caller(r);
}

void wake_caller(pending_race& r) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(&r.word), FUTEX_WAKE_PRIVATE, INT_MAX);
}

}  // namespace happy
