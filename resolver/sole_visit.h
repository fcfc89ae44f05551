// One thread at a time, and nobody waits: for what may be done without, in signal handlers and in children
// forked meanwhile.
#pragma once

#include <atomic>

namespace happy {

// Holds `busy` while it lives, if it found it free. In a child forked while it is held nobody gets it any more.
class sole_visit {
 public:
  explicit sole_visit(std::atomic<bool>& busy)
      : busy_(busy), mine_(!busy.exchange(true, std::memory_order_acquire)) {}
  ~sole_visit() {
    if (mine_) busy_.store(false, std::memory_order_release);
  }
  sole_visit(const sole_visit&) = delete;
  sole_visit& operator=(const sole_visit&) = delete;

  bool mine() const { return mine_; }

 private:
  std::atomic<bool>& busy_;
  bool mine_;
};

}  // namespace happy
