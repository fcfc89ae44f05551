// Runs the unit tests and ends with the line that every part of the tests ends with: "N passed, N failed".

#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.h"

#include <cstdio>

namespace {

Catch::Counts test_cases;
bool finished = false;

#if __has_include(<catch2/catch_all.hpp>)
using listener_base = Catch::EventListenerBase;
#else
using listener_base = Catch::TestEventListenerBase;
#endif

class counter : public listener_base {
 public:
  using listener_base::listener_base;

  void testRunEnded(const Catch::TestRunStats& stats) override {
    test_cases = stats.totals.testCases;
    finished = true;
  }
};

CATCH_REGISTER_LISTENER(counter)

}  // namespace

int main(int argc, char** argv) {
  const int status = Catch::Session().run(argc, argv);
  if (finished) {
    std::printf("%zu passed, %zu failed\n",
                static_cast<size_t>(test_cases.passed + test_cases.failedButOk),
                static_cast<size_t>(test_cases.failed));
  }
  return status;
}
