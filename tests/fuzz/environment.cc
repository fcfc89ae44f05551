// The configuration: lines are the process's environment variables.

#include <string>
#include <vector>

#include "shim/config.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(environment) {
  using namespace happy;
  const std::string text(data.begin(), data.end());
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size() && lines.size() < 64;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::vector<const char*> variables;
  for (const std::string& line : lines) variables.push_back(line.c_str());
  variables.push_back(nullptr);
  const environment e = read_environment(variables.data());
  for (const knob& k : knobs()) {
    if (k.field == nullptr) continue;
    const auto value = e.settings.*k.field;
    fuzz::expect(value >= k.minimum && value <= k.maximum, "every value is within its range");
  }
}
