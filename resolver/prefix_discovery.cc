#include "resolver/prefix_discovery.h"

#include <algorithm>
#include <iterator>

namespace happy {
namespace {

constexpr address well_known[] = {make_ipv4(192, 0, 0, 170), make_ipv4(192, 0, 0, 171)};

// A way to read an answer.
struct reading {
  nat64_prefix prefix;
  int which = 0;  // of the well-known addresses
};
using readings = bounded_vector<reading, std::size(translation_lengths)>;

readings read(const address& answer) {
  readings found;
  for (const std::uint8_t length : translation_lengths) {
    const auto prefix = make_prefix(answer, length);
    const auto* known =
        std::find(std::begin(well_known), std::end(well_known), octets_behind(length, answer));
    if (!prefix || known == std::end(well_known)) continue;
    found.push_back({*prefix, static_cast<int>(known - well_known)});
  }
  return found;
}

bool has_witness(const reading& r, std::span<const address> answers) {
  return std::any_of(answers.begin(), answers.end(), [&](const address& other) {
    return make_prefix(other, r.prefix.length) == r.prefix &&
           octets_behind(r.prefix.length, other) == well_known[1 - r.which];
  });
}

}  // namespace

prefix_list discovered_prefixes(std::span<const address> answers) {
  prefix_list result;
  for (const address& answer : answers) {
    const readings possible = read(answer);
    for (const reading& r : possible) {
      if (possible.size() > 1 && !has_witness(r, answers)) continue;
      if (!contains(result, r.prefix)) result.push_back(r.prefix);
    }
  }
  return result;
}

}  // namespace happy
