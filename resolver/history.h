// What is remembered of a network from one connection to the next, and from one program to the next: which
// names and families have failed there, and which addresses were of use. Pure: no clock, no file.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "shim/base/endpoint.h"
#include "shim/base/time.h"

namespace happy {

enum class history_kind : std::uint8_t { none, family, name, address };

// One thing that is remembered, as it stands in memory and in the file.
struct history_record {
  std::uint64_t network = 0;           // where: attachment.h
  std::array<std::uint8_t, 16> key{};  // an address, or a name's hash; of a family what failed last
  history_kind kind = history_kind::none;
  happy::family family = family::ipv4;
  std::uint16_t failures = 0;  // in a row
  std::uint32_t reserved = 0;
  std::int64_t failed_ns = 0;     // the last of them; 0: none
  std::int64_t succeeded_ns = 0;  // 0: never
  std::uint64_t reserved_too = 0;
  std::uint64_t checksum = 0;  // of all that stands before it
};
static_assert(sizeof(history_record) == 64 && std::is_trivially_copyable_v<history_record>);

// With the file's heading a page: some twenty names on the few networks of a day.
inline constexpr std::size_t max_history_records = 63;

// Names that have to fail in a row before the whole family counts as failing. One name's server may be what is
// broken.
inline constexpr int failures_of_family = 2;

// The time until what was demoted is tried first again doubles with each further failure, up to so many times
// the first. A family that works is thus preferred again, by every client, within
// `longest_demotion * retry` of its last failure.
//
// Spec:     hev3 Sorting, SORT-5
inline constexpr int longest_demotion = 10;

// What happened to an endpoint in a race that another one has won, or that it has won.
struct history_note {
  address where;
  std::uint64_t name = 0;  // hash_of(); 0: not known
  bool connected = false;  // false: it kept silent, or failed
  bool speaks_for_family = true;
  time_point at{};
};

// FNV-1a, the same for all cases of letters.
std::uint64_t hash_of(std::string_view name);

class history {
 public:
  // `retry`: how long what has failed is put last, at first.
  explicit history(duration retry) : retry_(retry) {}

  // What `image` holds; records that are damaged or from the future are left out.
  void load(std::span<const history_record> image, time_point now);
  void clear() { records_ = {}; }

  // The records, each with its checksum.
  std::span<const history_record> image() const { return records_; }

  // Whether anything is remembered of this network. 0 is no network: nothing ever is.
  bool knows(std::uint64_t network) const;

  // Failed lately here, as such, under this name or with its family; not due for another try.
  bool is_demoted(std::uint64_t network, const address& a, std::uint64_t name,
                  time_point now) const;

  // A connection to it has succeeded here lately, in a race.
  bool was_used(std::uint64_t network, const address& a, time_point now) const;

  // Whether its success would change what is remembered: something of it had failed.
  bool would_clear(std::uint64_t network, const address& a, std::uint64_t name) const;

  // Takes it in. The records changed, as bits by their places.
  std::uint64_t apply(std::uint64_t network, const history_note& what);

 private:
  struct key {
    history_kind kind;
    family of;
    std::array<std::uint8_t, 16> bytes{};
  };
  static key key_of(history_kind kind, const address& a, std::uint64_t name);

  const history_record* find(std::uint64_t network, const key& k) const;
  std::size_t place_for(std::uint64_t network, const key& k) const;
  duration demotion(const history_record& r) const;
  bool is_demoted(const history_record* r, time_point now) const;
  std::uint64_t fail(std::uint64_t network, const key& k, std::uint64_t name, time_point at);
  std::uint64_t succeed(std::uint64_t network, const key& k, bool create, time_point at);

  duration retry_;
  std::array<history_record, max_history_records> records_{};
};

// Sets the checksum, or says whether it is right.
void seal(history_record& r);
bool is_sound(const history_record& r);

}  // namespace happy
