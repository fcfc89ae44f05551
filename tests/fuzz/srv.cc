// RDATA of SRV records in a packet: the first byte says where it begins.

#include "tests/fuzz/claims.h"

FUZZ_TARGET(srv) {
  using namespace happy;
  if (data.empty()) return;
  const std::size_t at = data[0];
  const auto packet = data.subspan(1);
  const auto record = parse_srv(packet, at, packet.size() > at ? packet.size() - at : 0);
  if (!record) return;
  fuzz::expect_sound(*record);
  fuzz::expect(!record->usable || !record->target.empty(), "\".\" is no target");
}
