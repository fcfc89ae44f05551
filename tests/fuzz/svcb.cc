// RDATA of SVCB and HTTPS records.

#include <vector>

#include "tests/fuzz/claims.h"

FUZZ_TARGET(svcb) {
  using namespace happy;
  const auto record = parse_svcb(data);
  if (!record) return;
  fuzz::expect_sound(*record);
  if (record->priority == 0) {
    fuzz::expect(record->hints.empty() && record->port == 0, "an alias has no parameters");
    return;
  }
  std::vector<std::uint8_t> longer(data.begin(), data.end());
  longer.push_back(0);
  fuzz::expect(!parse_svcb(longer), "half a parameter behind the last one is malformed");
}
