// The RDATA of SRV records: priority, weight, port, target.

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

}  // namespace happy
