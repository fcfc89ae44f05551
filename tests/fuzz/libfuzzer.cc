// The entry that libFuzzer calls; each fuzzer is linked with one target.

#include <cstddef>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const happy::fuzz::target only = happy::fuzz::targets().begin()->second;
  only({data, size});
  return 0;
}
