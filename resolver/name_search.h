// The names that a lookup asks for one after the other, and what it says in the end if none of them has an
// address: glibc's res_query.c as a state machine without a clock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "resolver/resolv_conf.h"

namespace happy {

// One name to ask for.
struct search_step {
  enum class kind : std::uint8_t {
    first,   // the name itself, before the list
    domain,  // with a domain of the list
    root,    // the name itself, for the root that is on the list
    last,    // the name itself, unless the root's turn has come
  };
  std::string name;  // without the trailing dot
  kind what = kind::first;

  bool from_list() const { return what == kind::domain || what == kind::root; }
};

// In glibc's order: the name itself first if it has enough dots, then with each domain, then itself. Just itself
// where it is absolute. Some may be longer than a name can be, or no host names.
std::vector<search_step> search_steps(std::string_view name, bool absolute,
                                      const resolver_config& config);

// What the nameservers say of one name without addresses: h_errno, and how the search goes on.
enum class name_verdict : std::uint8_t {
  no_name,      // HOST_NOT_FOUND
  no_data,      // NO_DATA
  servfail,     // TRY_AGAIN; the search goes on
  out_of_time,  // TRY_AGAIN; no further domain is tried, but the name itself is
  unreachable,  // TRY_AGAIN; ends everything once the list has begun
  hollow,       // records that lead to no address: to glibc that is an answer, and ends everything
};

// Not empty, and at most max_search_domains + 2 steps.
class name_search {
 public:
  name_search() = default;
  explicit name_search(std::vector<search_step> steps) : steps_(std::move(steps)) {}

  // To be asked for now.
  const std::string& name() const { return steps_[at_].name; }
  bool has_list() const { return steps_.size() > 1; }

  // This name has no address: moves to the next one, false if that was all.
  bool go_on(name_verdict v);

  // What holds after all: the verdict that glibc reports.
  name_verdict result() const;
  // Of the last name that was asked for.
  name_verdict last() const { return last_; }

 private:
  std::vector<search_step> steps_;
  std::size_t at_ = 0;
  bool got_no_data_ = false;
  bool got_servfail_ = false;
  bool any_first_ = false;
  bool root_asked_ = false;
  name_verdict first_{};  // of the name itself, if it came first
  name_verdict last_{};
};

}  // namespace happy
