#include "resolver/dns_reply.h"

#include <random>

#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/dns_message.h"

namespace happy {
namespace {

using test::dns_message;
using test::ip;
using packet = std::vector<std::uint8_t>;

constexpr const char* name = "www.example.com";

dns_message reply(unsigned type = 1) { return dns_message(dns_message::query_for(name, type)); }

}  // namespace

TEST_CASE("dns_reply: addresses of the name, in the order of the packet", "[dns_reply]") {
  const answer a =
      read_reply(record_type::a, reply()
                                     .address_record(name, "192.0.2.2", 30)
                                     .address_record("WWW.EXAMPLE.COM", "192.0.2.1", 20)
                                     .bytes());
  CHECK(a.kind == answer_kind::positive);
  REQUIRE(a.addresses.size() == 2);
  CHECK(a.addresses[0] == ip("192.0.2.2"));
  CHECK(a.addresses[1] == ip("192.0.2.1"));
  CHECK(a.ttl == std::chrono::seconds(20));
  CHECK(a.canonical_name == name);
}

TEST_CASE("dns_reply: other names, types, classes and sizes are passed over", "[dns_reply]") {
  auto message = reply();
  message.address_record("other.example.com", "192.0.2.66")
      .address_record(name, "2001:db8::1")
      .record(name, 16, 0, {1, 'x'})
      .record(name, 1, 300, {192, 0, 2})
      .address_record(name, "192.0.2.1");
  const answer a = read_reply(record_type::a, message.bytes());
  REQUIRE(a.addresses.size() == 1);
  CHECK(a.addresses[0] == ip("192.0.2.1"));
}

TEST_CASE("dns_reply: an alias that is no host name is followed but not shown", "[dns_reply]") {
  auto message = reply();
  message.alias_record(name, "b.example.com").alias_record("b.example.com", "-c.example.com");
  message.address_record("-c.example.com", "192.0.2.1");
  const answer a = read_reply(record_type::a, message.bytes());
  CHECK(a.kind == answer_kind::positive);
  CHECK(a.canonical_name == "b.example.com");
}

TEST_CASE("dns_reply: an alias to nothing is hollow, an empty answer no data",
          "[dns_reply][ANSWER-5]") {
  CHECK(read_reply(record_type::a, reply().bytes()).kind == answer_kind::no_data);
  CHECK(read_reply(record_type::a, reply().alias_record(name, "b.example").bytes()).kind ==
        answer_kind::hollow);
}

TEST_CASE("dns_reply: a packet that is kept is judged by its header", "[dns_reply]") {
  constexpr auto mx = static_cast<record_type>(15);
  const packet full = reply(15).record(name, 15, 60, {0, 10, 1, 'm', 0}).bytes();
  const answer a = keep_reply(mx, full);
  CHECK(a.kind == answer_kind::positive);
  CHECK(a.packet == full);
  CHECK(keep_reply(mx, reply(15).bytes()).kind == answer_kind::no_data);
  const auto of_code = [&](unsigned rcode) {
    return keep_reply(mx, dns_message(dns_message::query_for(name, 15), rcode).bytes());
  };
  CHECK(of_code(3).kind == answer_kind::name_error);
  CHECK(of_code(2).refused == refusal::servfail);
  CHECK(of_code(5).refused == refusal::other_code);
  CHECK(of_code(1).kind == answer_kind::odd);
  CHECK(keep_reply(mx, packet(full.begin(), full.begin() + 11)).kind == answer_kind::odd);
  CHECK(keep_reply(mx, {}).kind == answer_kind::odd);
}

TEST_CASE("dns_reply: the response code decides first", "[dns_reply][ANSWER-5]") {
  const packet query = dns_message::query_for(name, 1);
  for (unsigned rcode = 1; rcode < 16; ++rcode) {
    auto message = dns_message(query, rcode).address_record(name, "192.0.2.1");
    const answer a = read_reply(record_type::a, message.bytes());
    const bool elsewhere = rcode == 2 || rcode == 4 || rcode == 5;
    const answer_kind otherwise = elsewhere ? answer_kind::server_failure : answer_kind::odd;
    CHECK(a.kind == (rcode == 3 ? answer_kind::name_error : otherwise));
    CHECK(a.addresses.empty());
  }
}

TEST_CASE("dns_reply: a TTL with its top bit set counts as zero", "[dns_reply]") {
  const answer a =
      read_reply(record_type::a, reply().address_record(name, "192.0.2.1", 0x80000000).bytes());
  CHECK(a.ttl == std::chrono::seconds(0));
}

TEST_CASE("dns_reply: more addresses than anyone tries are cut", "[dns_reply]") {
  auto message = reply();
  for (int i = 0; i < 200; ++i) message.address_record(name, "192.0.2." + std::to_string(i));
  CHECK(read_reply(record_type::a, message.bytes()).addresses.size() == max_addresses_per_answer);
}

TEST_CASE("dns_reply: a cut packet is a failure or what was before the cut, never more",
          "[dns_reply]") {
  auto message = reply();
  message.alias_record(name, "b.example.com").address_record("b.example.com", "192.0.2.1");
  const packet whole = message.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const packet cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const answer a = read_reply(record_type::a, cut);
    CHECK(a.kind == answer_kind::odd);
    CHECK(a.addresses.empty());
  }
}

TEST_CASE("dns_reply: a name that points to itself ends", "[dns_reply]") {
  packet message = reply().bytes();
  message[7] = 1;  // one answer
  const std::size_t at = message.size();
  message.insert(message.end(),
                 {static_cast<std::uint8_t>(0xc0 | at >> 8), static_cast<std::uint8_t>(at), 0, 1, 0,
                  1, 0, 0, 0, 1, 0, 4, 192, 0, 2, 1});
  CHECK(read_reply(record_type::a, message).kind == answer_kind::odd);
}

TEST_CASE("dns_reply: changed bytes are read in peace", "[dns_reply]") {
  auto message = reply(28);
  message.alias_record(name, "b.example.com").address_record("b.example.com", "2001:db8::1");
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    packet changed = message.bytes();
    for (int changes = static_cast<int>(random() % 8); changes >= 0; --changes) {
      changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
    }
    changed.resize(random() % 4 == 0 ? random() % changed.size() : changed.size());
    const answer a = read_reply(record_type::aaaa, changed);
    REQUIRE((a.kind == answer_kind::positive) == !a.addresses.empty());
  }
}

}  // namespace happy
