// A call into the engine: no cancellation, hooks on this thread pass through, and no signal handler runs:
// it could call connect(), which takes the engine's lock, or leave by siglongjmp() with all this undone.
#pragma once

#include "shim/base/guards.h"
#include "shim/late_libc.h"
#include "shim/process.h"

namespace happy {

class engine_visit {
 public:
  engine_visit() : before_(set_inside(1)) {}
  ~engine_visit() { set_inside(before_); }

  // What the caller's thread had blocked.
  std::uint64_t signals_before() const { return quiet_.before(); }

  engine_visit(const engine_visit&) = delete;
  engine_visit& operator=(const engine_visit&) = delete;

 private:
  signals_off quiet_;
  cancellation_off uncancelled_;
  int before_;
};

}  // namespace happy
