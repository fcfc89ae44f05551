// Whole replies: the first byte says what was asked for.

#include "resolver/dns_reply.h"
#include "tests/fuzz/claims.h"

FUZZ_TARGET(dns_reply) {
  using namespace happy;
  if (data.empty()) return;
  constexpr record_type types[] = {record_type::a, record_type::aaaa, record_type::srv,
                                   record_type::svcb, record_type::https};
  const record_type type = types[data[0] % std::size(types)];
  const answer a = read_reply(type, data.subspan(1));
  fuzz::expect(a.type == type, "the answer is one to the question");
  fuzz::expect((a.kind == answer_kind::positive) == (!a.addresses.empty() || !a.services.empty()),
               "positive means that there is something");
  fuzz::expect(a.addresses.empty() || a.services.empty(), "addresses or services");
  fuzz::expect(a.services.size() <= max_srv_records + max_service_records, "services are bounded");
  for (const address& found : a.addresses)
    fuzz::expect(found.family == family_of(type), "an address is of the family asked for");
  for (const service_record& record : a.services) fuzz::expect_sound(record);
}
