#include "resolver/prefix_table.h"

#include <algorithm>

namespace happy {

void prefix_table::advertise(const advertiser& who, const nat64_prefix& prefix, duration lifetime,
                             time_point now) {
  for (std::size_t i = advertised_.size(); i-- > 0;) {
    const entry& e = advertised_[i];
    if (e.expires <= now || (e.who == who && e.prefix == prefix)) advertised_.erase(i);
  }
  if (lifetime <= duration(0)) return;
  if (advertised_.full()) {
    const auto* first =
        std::min_element(advertised_.begin(), advertised_.end(),
                         [](const entry& a, const entry& b) { return a.expires < b.expires; });
    advertised_.erase(static_cast<std::size_t>(first - advertised_.begin()));
  }
  advertised_.push_back({who, prefix, now + lifetime});
}

void prefix_table::lose_link(std::uint32_t interface) {
  for (std::size_t i = advertised_.size(); i-- > 0;) {
    if (advertised_[i].who.interface == interface) advertised_.erase(i);
  }
}

void prefix_table::discover(const prefix_list& found, time_point until) {
  discovered_ = found;
  discovered_until_ = until;
}

prefix_list prefix_table::current(time_point now) const {
  prefix_list result;
  for (std::size_t i = advertised_.size(); i-- > 0;) {
    const entry& e = advertised_[i];
    if (now < e.expires && !contains(result, e.prefix)) result.push_back(e.prefix);
  }
  if (result.empty() && is_discovered(now)) return discovered_;
  return result;
}

bool prefix_table::any_advertised(time_point now) const {
  return std::any_of(advertised_.begin(), advertised_.end(),
                     [&](const entry& e) { return now < e.expires; });
}

void prefix_table::clear() {
  advertised_.clear();
  discovered_.clear();
  discovered_until_ = time_point::min();
}

}  // namespace happy
