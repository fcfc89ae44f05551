// One query of dns_client from its start to its answer, and the replies of nameservers on loopback.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "resolver/dns_client.h"
#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/dns_message.h"
#include "tests/support/dns_server.h"

namespace happy::test {

using packet = dns_server::packet;
using wall = std::chrono::steady_clock;

inline constexpr const char* name = "www.example.com";

inline resolver_config config_with(const std::vector<std::string>& nameservers) {
  resolver_config config;
  for (const std::string& text : nameservers) config.nameservers.push_back(ip(text));
  config.timeout_s = 1;
  return config;
}

// The loop that lookup.cc has in earnest.
inline answer finish(dns_query& query) {
  const auto deadline = wall::now() + std::chrono::seconds(20);
  while (wall::now() < deadline) {
    if (auto a = query.take_answer()) return *a;
    auto fds = query.poll_set();
    const auto left = query.until_timeout();
    REQUIRE(left.has_value());
    ::poll(fds.begin(), fds.size(),
           static_cast<int>(std::chrono::ceil<milliseconds>(*left).count()));
    for (const pollfd& fd : fds) {
      if (fd.revents != 0) query.process(fd.fd, fd.revents);
    }
    query.process_timeouts();
  }
  FAIL("no answer within 20 s");
  return {};
}

inline answer ask(record_type type, const resolver_config& config, std::uint16_t port) {
  auto query = dns_query::start(name, type, config, port);
  REQUIRE(query.ok());
  return finish(query.value());
}

inline packet address_reply(const packet& query) {
  return dns_message(query).address_record(dns_message::name_in(query), "192.0.2.1").bytes();
}

inline packet with_rcode(const packet& query, unsigned rcode) {
  return dns_message(query, rcode).bytes();
}

}  // namespace happy::test
