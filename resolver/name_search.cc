#include "resolver/name_search.h"

#include <algorithm>

namespace happy {

std::vector<search_step> search_steps(std::string_view name, bool absolute,
                                      const resolver_config& config) {
  using kind = search_step::kind;
  const auto dots = std::count(name.begin(), name.end(), '.');
  std::vector<search_step> steps;
  const bool itself_first = absolute || dots >= config.ndots;
  if (itself_first) steps.push_back({std::string(name), kind::first});
  if (absolute) return steps;
  for (std::string_view domain : config.search) {
    if (domain.starts_with('.')) domain.remove_prefix(1);
    search_step step{std::string(name), domain.empty() ? kind::root : kind::domain};
    if (domain.ends_with('.')) domain.remove_suffix(1);
    if (step.what == kind::domain) step.name.append(".").append(domain);
    steps.push_back(std::move(step));
  }
  const bool spared = dots == 0 && !config.search.empty() && config.no_tld_query;
  if (!itself_first && !spared) steps.push_back({std::string(name), kind::last});
  return steps;
}

bool name_search::go_on(name_verdict v) {
  const search_step& asked = steps_[at_];
  last_ = v;
  if (v == name_verdict::hollow) return false;
  if (asked.from_list()) {
    got_no_data_ = got_no_data_ || v == name_verdict::no_data;
    got_servfail_ = got_servfail_ || v == name_verdict::servfail;
    root_asked_ = root_asked_ || asked.what == search_step::kind::root;
    if (v == name_verdict::unreachable) return false;
  } else if (asked.what == search_step::kind::first) {
    any_first_ = true;
    first_ = v;
  }
  const bool leaves_list = asked.from_list() && v == name_verdict::out_of_time;
  const auto is_due = [&](const search_step& s) {
    return s.from_list() ? !leaves_list : !root_asked_;
  };
  const auto rest = steps_.begin() + static_cast<std::ptrdiff_t>(at_) + 1;
  const auto next = std::find_if(rest, steps_.end(), is_due);
  if (next == steps_.end()) return false;
  at_ = static_cast<std::size_t>(next - steps_.begin());
  return true;
}

name_verdict name_search::result() const {
  if (last_ == name_verdict::hollow) return last_;
  if (steps_[at_].from_list() && last_ == name_verdict::unreachable) return last_;
  if (any_first_) return first_;
  if (got_no_data_) return name_verdict::no_data;
  return got_servfail_ ? name_verdict::servfail : last_;
}

}  // namespace happy
