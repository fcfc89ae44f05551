#include "racer/plan.h"

#include <algorithm>

namespace happy {
namespace {

using listed = std::span<const listed_endpoint>;

family counted_family(const listed_endpoint& e) {
  return e.translated ? family::ipv4 : e.where.address.family;
}

// The endpoints of one family in a group, in its order.
class family_queue {
 public:
  family_queue(listed group, family f, const endpoint& without)
      : group_(group), family_(f), without_(without) {
    skip();
  }

  bool empty() const { return at_ == group_.size(); }

  const listed_endpoint& take() {
    const listed_endpoint& next = group_[at_++];
    skip();
    return next;
  }

 private:
  void skip() {
    while (at_ < group_.size() &&
           (counted_family(group_[at_]) != family_ || group_[at_].where == without_)) {
      ++at_;
    }
  }

  listed group_;
  family family_;
  endpoint without_;
  std::size_t at_ = 0;
};

listed first_group(listed rest) {
  const auto end = std::find_if(rest.begin(), rest.end(), [&](const listed_endpoint& e) {
    return e.group != rest.front().group;
  });
  return rest.first(static_cast<std::size_t>(end - rest.begin()));
}

// `first_left`: how many of family `first` still come before the families alternate.
void append_group(endpoint_list& result, listed group, const endpoint& without, family first,
                  int first_left) {
  family_queue same(group, first, without);
  family_queue others(group, other(first), without);
  for (; first_left > 0 && !same.empty(); --first_left) result.push_back(same.take());
  while (!same.empty() || !others.empty()) {
    if (!others.empty()) result.push_back(others.take());
    if (!same.empty()) result.push_back(same.take());
  }
}

listed_endpoint find_named(listed sorted, const endpoint& named) {
  const auto found = std::find_if(sorted.begin(), sorted.end(),
                                  [&](const listed_endpoint& e) { return e.where == named; });
  return found == sorted.end() ? listed_endpoint{.where = named} : *found;
}

// The first of a group that is not `without`, or nullptr.
const listed_endpoint* head_of(listed group, const endpoint& without) {
  const auto found = std::find_if(group.begin(), group.end(),
                                  [&](const listed_endpoint& e) { return e.where != without; });
  return found == group.end() ? nullptr : &*found;
}

}  // namespace

endpoint_list plan(std::span<const listed_endpoint> sorted, const endpoint& named,
                   int preferred_family_count) {
  endpoint_list result;
  result.push_back(find_named(sorted, named));
  bool named_counts = true;
  while (!sorted.empty()) {
    const listed group = first_group(sorted);
    const listed_endpoint* head = head_of(group, named);
    if (named_counts) {
      append_group(result, group, named, counted_family(result[0]), preferred_family_count - 1);
    } else if (head != nullptr) {
      append_group(result, group, named, counted_family(*head), preferred_family_count);
    }
    named_counts = false;
    sorted = sorted.subspan(group.size());
  }
  return result;
}

}  // namespace happy
