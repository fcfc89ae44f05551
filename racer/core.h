// Everything the engine knows, and the one lock around it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "racer/engine_lock.h"
#include "racer/pace.h"
#include "racer/pending.h"
#include "racer/timing.h"
#include "racer/worker.h"
#include "resolver/bridge.h"
#include "resolver/history.h"
#include "resolver/lookup.h"
#include "resolver/nat64.h"
#include "resolver/resolve.h"
#include "resolver/srv_answers.h"
#include "resolver/system_files.h"
#include "shim/abi.h"
#include "shim/base/guards.h"

namespace happy {

// Lookups whose queries are still open after they were answered; of those that no race waits for, the
// oldest is given up first. Each holds a socket or two, which hide() refuses long before this bound.
inline constexpr std::size_t max_open_lookups = 256;

// What races have shown and is not written yet. One race leaves two or three; what is beyond is forgotten.
inline constexpr std::size_t max_history_notes = 32;

// A getaddrinfo() that the program's thread is in. Only that thread touches `work`.
struct running_lookup {
  std::uint64_t id = 0;
  pid_t thread = 0;
  const void* frame = nullptr;  // where the caller's stack stood
  std::unique_ptr<name_resolution> work;
};

struct core {
  explicit core(const happy_host& h)
      : host(h),
        timing(timing_from(*h.settings)),
        translator(h.settings->pref64),
        bridges(static_cast<std::uint8_t>(h.settings->bridge_pool)),
        services(services_from(*h.settings)) {}

  const happy_host& host;
  race_timing timing;
  nat64 translator;
  prefix_list
      gone_by;  // prefixes behind which datagrams were sent, the last first: answers come later
  bridge_table bridges;
  engine_lock lock;
  std::atomic<std::uint32_t> turns{0};  // how often it was taken
  system_files files;
  intent_table intents;
  std::vector<known_service> services;  // whose records are asked for
  srv_answers targets;
  std::vector<running_lookup> running_lookups;
  std::vector<std::unique_ptr<lookup>> open_lookups;
  race_pool races;
  pace starts;  // of hidden attempts
  worker hidden_worker;
  bool has_rehearsed = false;  // a hand-over, in this process
  bool proc_is_known = false;  // whether it is there (noted_registrations.h)
  std::uint64_t last_id = 0;   // of lookups and races
  endpoint_list sorted;        // for refresh_plan(): stacks are small where handlers run
  bounded_vector<history_note, max_history_notes> notes;
  std::atomic<bool> has_notes{false};
  sigset_t mask_before_fork{};
};

// The engine's lock. Held for short: no blocking call, no call into the program. Whoever takes it has all
// signals blocked (see abi.h), because a handler may call connect().
class core_guard {
 public:
  explicit core_guard(core& c) : lock_(c.lock) { c.turns.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::lock_guard<engine_lock> lock_;
};

// The same for hooks of calls that a signal handler may make: the lock is given up for lost when one holder
// has had it for `patience`, because that may wait for malloc(), and this thread's own malloc() may have been
// interrupted. A queue of others is waited for longer, at most `longest_queue` times as long.
class patient_guard {
 public:
  patient_guard(core& c, milliseconds patience);
  ~patient_guard() {
    if (held_) lock_.unlock();
  }
  patient_guard(const patient_guard&) = delete;
  patient_guard& operator=(const patient_guard&) = delete;

  explicit operator bool() const { return held_; }

 private:
  static constexpr int longest_queue = 10;

  engine_lock& lock_;
  bool held_;
};

// To begin something: without the lock the call is as without libhappy. Nobody holds it for so long.
inline constexpr milliseconds patience_to_begin(200);
// To end it: a race is left to itself, and its record is lost.
inline constexpr milliseconds patience_to_end(5000);

// Never destroyed: hooks and the worker may outlive every exit handler.
core& the_core();

// Takes in late answers of open lookups and forgets those that are too old to join a race.
// Call with the lock held, where memory can be allocated: not in what connect() calls.
void service_lookups(core& c, time_point now);

// Around fork(). The child has no worker, no races and no open lookups; what is known stays.
// Prepare waits for the lock for 200 ms at most: whoever holds it may be waiting for what the forking
// thread holds already (a sanitizer's or another library's own fork handler). False: not prepared.
bool fork_prepare();
void fork_parent();
void fork_child();

// Looks whether /proc is there, at first and after the program may have gone elsewhere (chroot).
//
// Context:  signal-safe.
void know_proc(core& c);

// Tells the hook of connect() which addresses are worth a look.
void mark_addresses(core& c, const intent& meant);

// How long answers to the lookup join races.
time_point joins_until(const lookup& l, const intent& meant);

// Makes room for one more open lookup.
void bound_open_lookups(core& c);

// A race has been won: late answers of `id` join no other. They are taken in for a while where a worker stays
// that can listen; in a program without threads the next service_lookups() frees it.
//
// Context:  signal-safe.
void finish_lookup(core& c, std::uint64_t id);

// Whether late answers of `id` may still come.
bool lookup_is_open(core& c, std::uint64_t id, time_point now);

}  // namespace happy
