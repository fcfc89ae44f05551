// Answers that are remembered for a little while, within the process.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "resolver/answer.h"
#include "shim/base/time.h"

namespace happy {

// Half a minute of a browser-like program: some 20 names with three types each.
inline constexpr std::size_t max_cached_answers = 64;

inline constexpr std::chrono::seconds longest_positive{60};
// A program that waits for a name to appear asks once a second, as a rule.
inline constexpr std::chrono::seconds longest_negative{1};

// Keyed by name (in any case) and type. All of it is forgotten when `generation` differs: it stands for the
// system's files and the host's addresses, so that nothing outlives a change of these.
//
// Not for two threads at once.
class answer_cache {
 public:
  // What is known and still good. Addresses are rotated from one time to the next where the nameserver has
  // been seen to do so: in a fixed order, if it keeps one.
  std::optional<answer> find(std::string_view name, record_type type, std::uint64_t generation,
                             time_point now);

  // Keeps a positive answer for its TTL, a negative one for a second. Others, and those with a TTL of 0 or
  // with more addresses than are kept, are not kept. The entry that ends first makes room.
  void keep(std::string_view name, const answer& what, std::uint64_t generation, time_point now);

  // The name, and those that search domains made of it. Frees nothing.
  void drop(std::string_view name);
  void clear();

 private:
  struct entry {
    std::string name;
    answer what;
    time_point good_until{};
    bool rotates = false;
    bool own_name = false;  // there is no alias
  };

  std::unique_ptr<entry>* place_of(std::string_view name, record_type type);
  void meet(std::uint64_t generation);

  std::array<std::unique_ptr<entry>, max_cached_answers> entries_;
  std::uint64_t generation_ = 0;
};

// The process's. Each of these does nothing (and finds nothing) while another thread is in one of them.
//
// Context:  any thread; allocates, may throw std::bad_alloc.
std::optional<answer> find_known_answer(std::string_view name, record_type type,
                                        std::uint64_t generation, time_point now);
void keep_known_answer(std::string_view name, const answer& what, std::uint64_t generation,
                       time_point now);

// Unlike the others these are never without effect: where the cache is taken, all of it is forgotten.
//
// Context:  signal-safe; neither allocate nor free.
void drop_known_answers(std::string_view name) noexcept;
void forget_known_answers() noexcept;

}  // namespace happy
