// A call into the engine: no cancellation, and hooks on this thread pass through.
#pragma once

#include "shim/base/guards.h"
#include "shim/process.h"

namespace happy {

class engine_visit {
 public:
  engine_visit() : before_(set_inside(1)) {}
  ~engine_visit() { set_inside(before_); }
  engine_visit(const engine_visit&) = delete;
  engine_visit& operator=(const engine_visit&) = delete;

 private:
  cancellation_off uncancelled_;
  int before_;
};

}  // namespace happy
