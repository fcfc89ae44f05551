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

namespace {

constexpr unsigned srv = 33;

packet srv_data(unsigned priority, unsigned port, const std::string& target) {
  packet data = {
      static_cast<std::uint8_t>(priority >> 8), static_cast<std::uint8_t>(priority), 0, 1,
      static_cast<std::uint8_t>(port >> 8),     static_cast<std::uint8_t>(port)};
  const packet wire = dns_message::wire_name(target);
  data.insert(data.end(), wire.begin(), wire.end());
  return data;
}

std::vector<std::string> usable_targets(const dns_message& message) {
  auto copy = message;
  std::vector<std::string> list;
  for (const service_record& r : read_reply(record_type::srv, copy.bytes()).services) {
    if (r.usable) list.push_back(r.target);
  }
  return list;
}

}  // namespace

TEST_CASE("dns_reply: SRV records that cannot be used displace no good one",
          "[dns_reply][XMPP-1]") {
  const std::vector<std::string> good{"good.example"};
  const packet no_port = srv_data(0, 0, "a.example");
  const packet nothing = srv_data(0, 5222, "");
  const packet no_name = srv_data(0, 5222, "a b.example");
  for (const packet& bad : {no_port, nothing, no_name, packet{0, 0, 0}, packet{}}) {
    auto message = reply(srv);
    for (int i = 0; i < 20; ++i) message.record(name, srv, 300, bad);
    message.record(name, srv, 300, srv_data(0, 5222, "good.example"));
    CHECK(usable_targets(message) == good);
    for (int i = 0; i < 20; ++i) message.record(name, srv, 300, bad);
    CHECK(usable_targets(message) == good);
  }
}

TEST_CASE("dns_reply: an SRV record beside \".\" that is malformed is still a second one",
          "[dns_reply][XMPP-6]") {
  auto message = reply(srv);
  message.record(name, srv, 300, srv_data(0, 0, "")).record(name, srv, 300, {0, 0});
  const answer a = read_reply(record_type::srv, message.bytes());
  REQUIRE(a.services.size() == 2);
  CHECK(a.services[0].target.empty());
  CHECK_FALSE(a.services[1].target.empty());
  CHECK_FALSE(a.services[1].usable);
}

TEST_CASE("dns_reply: of very many SRV records every priority keeps one", "[dns_reply][XMPP-1]") {
  auto message = reply(srv);
  for (int i = 0; i < 200; ++i)
    message.record(name, srv, 300, srv_data(0, 5222, "a" + std::to_string(i) + ".example"));
  for (unsigned priority = 1; priority <= 3; ++priority)
    message.record(name, srv, 300, srv_data(priority, 5222, "spare" + std::to_string(priority)));
  for (int i = 200; i < 400; ++i)
    message.record(name, srv, 300, srv_data(0, 5222, "a" + std::to_string(i) + ".example"));
  const std::vector<std::string> kept = usable_targets(message);
  CHECK(kept.size() == max_srv_records);
  for (const char* spare : {"spare1", "spare2", "spare3"})
    CHECK(std::find(kept.begin(), kept.end(), spare) != kept.end());
}

TEST_CASE("dns_reply: HTTPS records that cannot be used displace no good one",
          "[dns_reply][SVCB-4]") {
  constexpr unsigned https = 65;
  auto message = reply(https);
  // Mandatory: a key that nobody knows.
  for (int i = 0; i < 20; ++i)
    message.record(name, https, 300, {0, 1, 0, 0, 0, 0, 2, 0xff, 0, 0xff, 0, 0, 1, 'x'});
  message.record(name, https, 300, {0, 2, 0});
  const answer a = read_reply(record_type::https, message.bytes());
  CHECK(std::count_if(a.services.begin(), a.services.end(),
                      [](const service_record& r) { return r.usable; }) == 1);
  CHECK(a.services.size() == max_service_records + 1);
}

}  // namespace happy
