// What strangers say of a NAT64's prefix: the option of router advertisements, bare and as the kernel hands it on, and
// the file that happy-pref64 keeps. The first byte says which.

#include <algorithm>

#include "resolver/netlink/advertised_option.h"
#include "resolver/pref64_file.h"
#include "resolver/pref64_option.h"
#include "tests/fuzz/target.h"

namespace {

void check_prefix(const happy::nat64_prefix& prefix) {
  using namespace happy;
  fuzz::expect(std::find(std::begin(translation_lengths), std::end(translation_lengths),
                         prefix.length) != std::end(translation_lengths),
               "a length of RFC 6052");
  const address ipv4 = make_ipv4(198, 51, 100, 10);
  fuzz::expect(embedded_ipv4(prefix, synthesise(prefix, ipv4)) == ipv4, "there and back");
  fuzz::expect(parse_prefix(to_text(prefix).chars) == prefix, "its text means the same");
}

void check_file(std::string_view text) {
  using namespace happy;
  constexpr std::uint64_t network = 4026531840;
  const auto stored = parse_prefixes(text, network);
  if (!stored) return;
  for (const stored_prefix& p : *stored) check_prefix(p.prefix);
  const std::span<const stored_prefix> list(stored->begin(), stored->size());
  const auto again = parse_prefixes(format_prefixes(list, network), network);
  fuzz::expect(again && std::equal(again->begin(), again->end(), list.begin(), list.end()),
               "what is written again is read again");
  fuzz::expect(!parse_prefixes(text, network + 1), "of one network only");
}

void check_message(std::span<const std::uint8_t> message) {
  using namespace happy;
  happy_netlink_option told{};
  told.size = sizeof told.data + 1;
  if (!parse_advertised(message, told)) return;
  fuzz::expect(told.size <= sizeof told.data && told.size <= message.size(),
               "no more than was said");
  parse_pref64({told.data, told.size});
}

}  // namespace

FUZZ_TARGET(pref64) {
  using namespace happy;
  if (data.empty()) return;
  const auto rest = data.subspan(1);
  if (data[0] == 'f') return check_file({reinterpret_cast<const char*>(rest.data()), rest.size()});
  if (data[0] == 'm') return check_message(rest);
  const auto option = parse_pref64(rest);
  if (!option) return;
  fuzz::expect(rest.size() >= 16 && rest[0] == 38 && rest[1] == 2, "16 bytes of type 38");
  fuzz::expect(option->lifetime.count() >= 0 && option->lifetime.count() <= 8 * 8191,
               "13 bits of 8 seconds");
  check_prefix(option->prefix);
}
