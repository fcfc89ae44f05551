#include "racer/plan.h"

namespace happy {
namespace {

// The rest of `sorted` in one family, in its order.
class family_queue {
 public:
  family_queue(std::span<const endpoint> sorted, family f, const endpoint& without)
      : sorted_(sorted), family_(f), without_(without) {
    skip();
  }

  bool empty() const { return at_ == sorted_.size(); }

  endpoint take() {
    const endpoint next = sorted_[at_++];
    skip();
    return next;
  }

 private:
  void skip() {
    while (at_ < sorted_.size() &&
           (sorted_[at_].address.family != family_ || sorted_[at_] == without_)) {
      ++at_;
    }
  }

  std::span<const endpoint> sorted_;
  family family_;
  endpoint without_;
  std::size_t at_ = 0;
};

}  // namespace

endpoint_list plan(std::span<const endpoint> sorted, const endpoint& named,
                   int preferred_family_count) {
  family_queue same(sorted, named.address.family, named);
  family_queue others(sorted, other(named.address.family), named);
  endpoint_list result;
  result.push_back(named);
  for (int i = 1; i < preferred_family_count && !same.empty(); ++i) result.push_back(same.take());
  while (!same.empty() || !others.empty()) {
    if (!others.empty()) result.push_back(others.take());
    if (!same.empty()) result.push_back(same.take());
  }
  return result;
}

}  // namespace happy
