// Every input that fuzzing has found worth keeping, again.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "tests/fuzz/target.h"
#include "tests/support/catch.h"

namespace {

// A buffer of exactly its size, so that a sanitizer sees the first byte read beyond it.
void replay(happy::fuzz::target target, const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(stream), {});
  const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  target({exact.get(), bytes.size()});
}

}  // namespace

TEST_CASE("fuzz: every target's corpus holds its claims", "[fuzz]") {
  REQUIRE_FALSE(happy::fuzz::targets().empty());
  for (const auto& [name, target] : happy::fuzz::targets()) {
    int inputs = 0;
    for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus/" + name)) {
      INFO(entry.path());
      REQUIRE_NOTHROW(replay(target, entry.path()));
      ++inputs;
    }
    INFO(name);
    CHECK(inputs > 0);
  }
}
