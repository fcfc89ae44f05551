// What all targets that read service records claim of them.
#pragma once

#include <algorithm>

#include "resolver/host_name.h"
#include "resolver/service_record.h"
#include "tests/fuzz/target.h"

namespace happy::fuzz {

inline void expect_sound(const service_record& record) {
  expect(record.target.size() < 1024, "the target is as short as a name can be");
  if (record.usable && !record.target.empty()) {
    expect(record.target.size() <= max_name_length, "a usable target can be asked for");
    expect(record.target.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.") ==
               std::string::npos,
           "a usable target is plain");
  }
  const auto of = [&](family f) {
    return std::count_if(record.hints.begin(), record.hints.end(),
                         [f](const address& a) { return a.family == f; });
  };
  expect(of(family::ipv4) <= static_cast<long>(max_hints), "IPv4 hints are bounded");
  expect(of(family::ipv6) <= static_cast<long>(max_hints), "IPv6 hints are bounded");
}

}  // namespace happy::fuzz
