// The RDATA of SRV records: priority, weight, port, target.

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "resolver/service_record.h"
#include "resolver/wire_name.h"

namespace happy {

std::optional<service_record> parse_srv(std::span<const std::uint8_t> packet, std::size_t rdata_at,
                                        std::size_t rdata_size) {
  constexpr std::size_t numbers = 6;
  if (rdata_at > packet.size() || packet.size() - rdata_at < rdata_size || rdata_size <= numbers)
    return std::nullopt;
  const auto number16 = [&](std::size_t at) {
    return static_cast<std::uint16_t>(packet[rdata_at + at] << 8 | packet[rdata_at + at + 1]);
  };
  const std::optional<wire_name> target =
      read_name(packet.first(rdata_at + rdata_size), rdata_at + numbers);
  if (!target || target->size != rdata_size - numbers) return std::nullopt;
  service_record record;
  record.priority = number16(0);
  record.weight = number16(2);
  record.port = number16(4);
  record.target = target->text;
  // RFC 2782: "." says that the service is not available at this domain.
  record.usable = target->plain && !target->text.empty() && record.port != 0;
  return record;
}

namespace {

// A draw from 0 to `most`, at most 2^32 - 1: Marsaglia's xorshift, whose state is never 0.
std::uint32_t draw(std::uint32_t& state, std::uint32_t most) {
  if (state == 0) state = 0x9e3779b9;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return static_cast<std::uint32_t>(std::uint64_t{state} * (std::uint64_t{most} + 1) >> 32);
}

using records = std::vector<service_record>::iterator;

// RFC 2782: "choose a uniform random number between 0 and the sum computed (inclusive), and select the RR
// whose running sum value is the first in the selected order which is greater than or equal to the random
// number selected". Those of weight 0 stand at the beginning.
records select(records first, records last, std::uint32_t& random) {
  const auto add = [](std::uint32_t sum, const service_record& r) { return sum + r.weight; };
  const std::uint32_t chosen = draw(random, std::accumulate(first, last, std::uint32_t{0}, add));
  std::uint32_t running = 0;
  return std::find_if(first, last, [&](const service_record& r) {
    running += r.weight;
    return running >= chosen;
  });
}

void order_group(records first, records last, std::uint32_t& random) {
  // Which of several without weight is first is nobody's wish: each answer's own order is turned.
  const auto weightless =
      std::stable_partition(first, last, [](const service_record& r) { return r.weight == 0; });
  for (records i = first; weightless - i > 1; ++i) {
    std::iter_swap(i, i + draw(random, static_cast<std::uint32_t>(weightless - i - 1)));
  }
  for (; last - first > 1; ++first) {
    const records chosen = select(first, last, random);
    std::rotate(first, chosen, chosen + 1);
  }
}

}  // namespace

void limit_srv(std::vector<service_record>& list, std::size_t most) {
  while (list.size() > most) {
    std::map<std::uint16_t, std::size_t> sizes;
    for (const service_record& r : list) ++sizes[r.priority];
    const auto largest =
        std::max_element(sizes.rbegin(), sizes.rend(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto last = std::find_if(list.rbegin(), list.rend(), [&](const service_record& r) {
      return r.priority == largest->first;
    });
    list.erase(std::next(last).base());
  }
}

void order_srv(std::vector<service_record>& list, std::uint32_t& random) {
  std::stable_sort(list.begin(), list.end(), [](const service_record& a, const service_record& b) {
    return a.priority < b.priority;
  });
  for (auto first = list.begin(); first != list.end();) {
    const auto last = std::find_if(
        first, list.end(), [&](const service_record& r) { return r.priority != first->priority; });
    order_group(first, last, random);
    first = last;
  }
}

}  // namespace happy
