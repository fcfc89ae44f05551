// A connect() of the program that may become a race, and the pool of such records.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "racer/attempt.h"
#include "racer/race.h"
#include "resolver/intent.h"

namespace happy {

// A socket of the program's own that is connecting without blocking.
struct program_socket {
  int fd = -1;
  std::uint64_t cookie = 0;
  endpoint where;
};

// A program that races by itself has two or three sockets under way for one lookup.
inline constexpr std::size_t max_program_sockets = 8;

// What a hidden attempt was given.
struct copied_options {
  options_digest digest = 0;
  std::uint64_t from = 0;     // cookie of the program's socket
  std::uint32_t changes = 0;  // happy_pending::option_changes then
};

struct hidden_attempt {
  endpoint where;
  guarded_socket socket;
  copied_options options;
};

// The kernel gives memory as pages.
inline constexpr std::size_t page_size = 4096;

// Guarded by the engine's lock, but for `word`.
//
// Laid out so that a race of a few addresses touches four pages: what is short, then the long lists, of which only
// the beginnings are used.
struct alignas(page_size) pending_race {
  // Which record this is, and which use of it.
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  bool used = false;
  bool non_blocking = false;
  bool published = false;  // the caller has been told; a won race's original is shut down

  // The caller.
  std::uint64_t id = 0;  // in the trace
  int fd = -1;
  std::uint64_t cookie = 0;  // of the socket behind `fd` when the race began
  pid_t thread = 0;
  bool single_threaded = false;  // the process had no other thread
  const void* frame = nullptr;   // where the caller's stack stood
  timeval program_timeout{};     // SO_SNDTIMEO as the program set it
  time_point program_deadline = never;
  time_point began{};
  bool borrowed_timeout = false;  // SO_SNDTIMEO carries the delay at the moment
  // The caller's thread sleeps while it is open_word(). Every use of the record has values of its own,
  // so that a sleeper of an earlier use never takes the present one for its own.
  std::atomic<std::uint32_t> word{0};
  std::uint32_t open_word() const { return generation * 2; }
  bool slept_on = false;  // it has been told to

  // What it meant.
  endpoint named;  // what the program's own attempt stands for in the state machine
  std::uint16_t port = 0;
  duration delay{};   // between its own attempt and the first hidden one
  bool swap = false;  // HAPPY_FORCE=swap: a hidden attempt goes to the very address that it named
  std::uint64_t lookup = 0;  // whose late answers may join; 0: none
  bool last_resort = false;  // there may be A records that were not asked for

  // Non-blocking calls: the program's sockets that are still connecting.
  bool clocked =
      false;  // the delay is watched by the program's own waiting calls, not by the worker
  bounded_vector<program_socket, max_program_sockets> sockets;
  std::uint64_t veiled = 0;   // cookie of the one that shows nothing (veiled_connect.h); 0: none
  bool on_their_own = false;  // each is a request of its own: begin_again()
  time_point forgotten_at = never;  // the program has closed them all; its next may come until then

  // The hidden side.
  bool driven = false;    // no worker to be had: the program's own calls move it on
  bool deaf = false;      // driven where nothing can be allocated: late answers are not taken in
  bool orphaned = false;  // driven: the fd was closed; its own attempt goes on behind original_dup
  bool taken_back = false;         // driven: another thread disconnects the socket
  bool named_troubled = false;     // driven: an ICMP error came for the program's own attempt
  bool armed = false;              // the worker watches the time
  bool active = false;             // hidden attempts may be made
  time_point active_from = never;  // an armed race becomes active then
  time_point rests_until = time_point::min();  // other races to the same address go first: pace.h
  original_socket original;
  guarded_socket original_dup;  // keeps original.fd
  int reserved = 0;             // descriptors set aside: race_pool::reserve()
  bounded_vector<hidden_attempt, max_attempts_in_flight> attempts;
  bool won = false;
  bool lost = false;
  time_point won_at{};
  bool handed_over = false;      // the winner is behind the program's fd already
  guarded_socket winner_socket;  // of a lost race: the failed one that the program is shown
  copied_options winner_options;
  endpoint winner{};

  // The lists.
  known_destination known;
  race machine{race_timing{}};
  bounded_vector<failure, max_candidates> failures;
};

// Lets the caller's thread look at `word` again, if it sleeps on it.
void wake_caller(pending_race& r);

// Races at once. Each holds a few descriptors and, if its first endpoint is slow, is watched by one
// worker; beyond this number connect() is left alone.
inline constexpr std::size_t max_races = 1024;

// Records come from the kernel in blocks, never from malloc(): connect() may be called in a signal handler
// that has interrupted it.
class race_pool {
 public:
  // A record with everything at its start, or nullptr: all are in use, or there is no memory.
  //
  // Context:  signal-safe.
  pending_race* acquire();

  // The record if it is still in the use that `generation` names, else nullptr.
  pending_race* find(std::uint32_t index, std::uint32_t generation);

  // Sets descriptors aside for the race's own: the dup of the program's socket and up to three attempts. All
  // races together have a quarter of what RLIMIT_NOFILE leaves when the program's own are taken away; a race
  // that gets none waits for others to end. `lowest_free`: a number just got, so that those below are taken.
  bool reserve(pending_race& r, int lowest_free, time_point now);

  void give_back(pending_race& r);

  // Until when no race can become active, unless one that is ends.
  time_point full_until() const { return full_until_; }

  // Closes what the record holds, frees it, and wakes a caller that sleeps on it.
  void release(pending_race& r);

  bool none_used() const { return used_ == 0; }

  // From record `first` on, around, until `visit` returns false. Returns where to go on.
  template <typename Function>
  std::uint32_t visit_used_from(std::uint32_t first, Function&& visit) {
    for (std::uint32_t i = 0; i < made_; ++i) {
      const std::uint32_t index = (first + i) % made_;
      if (pending_race& r = at(index); r.used && !visit(r)) return index + 1;
    }
    return first;
  }

  template <typename Function>
  void for_each_used(Function&& function) {
    for (std::uint32_t i = 0; i < made_; ++i) {
      if (pending_race& r = at(i); r.used) function(r);
    }
  }

 private:
  static constexpr std::uint32_t block_size = 4;  // 112 KiB
  using block = pending_race[block_size];

  pending_race& at(std::uint32_t index) {
    return (*blocks_[index / block_size])[index % block_size];
  }
  pending_race* make();

  std::array<block*, max_races / block_size> blocks_{};  // addresses stay: callers sleep on `word`
  std::uint32_t made_ = 0;
  int reserved_ = 0;  // by all of them
  time_point full_until_ = time_point::min();
  std::uint32_t used_ = 0;
};

}  // namespace happy
