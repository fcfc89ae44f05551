// SRV records as a test has them answered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "resolver/service_record.h"

namespace happy::test {

inline service_record srv(std::uint16_t priority, std::uint16_t weight, std::uint16_t port,
                          const std::string& target) {
  service_record r;
  r.priority = priority;
  r.weight = weight;
  r.port = port;
  r.target = target;
  r.usable = !target.empty();
  return r;
}

inline std::vector<std::string> targets_of(const std::vector<service_record>& records) {
  std::vector<std::string> list;
  for (const service_record& r : records) list.push_back(r.target);
  return list;
}

}  // namespace happy::test
