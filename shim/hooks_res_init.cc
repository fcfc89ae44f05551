// res_init(): a program calls it when it knows that the network has changed. Answers that are remembered end
// with it.

#include <resolv.h>

#include "shim/engine_calls.h"
#include "shim/late_function.h"
#include "shim/process.h"

// glibc's header renames what programs write.
#undef res_init

namespace happy {
namespace {

constinit late_function<int (*)()> real_res_init{"__res_init"};

}  // namespace
}  // namespace happy

extern "C" __attribute__((visibility("default"))) int __res_init() noexcept {
  const int code = happy::real_res_init.get()();
  if (happy::hooks_live() && !happy::foreign_process())
    happy::tell_engine([](const happy_engine& engine) { engine.forget_answers(); });
  return code;
}
