// Questions as resolv.conf wants them, and what replies, whole, cut off or odd, come to.

#include "resolver/dns_client.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>

#include "resolver/nameserver_health.h"
#include "tests/support/dns_queries.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using std::chrono::seconds;
using namespace test;

}  // namespace

TEST_CASE("dns_client: a positive answer has its addresses, name and TTL", "[dns_client]") {
  with_functions functions;
  const int before = open_descriptors();
  {
    dns_server server([](const packet& query, bool) {
      return dns_message(query)
          .address_record(name, "192.0.2.1", 60)
          .address_record(name, "192.0.2.2", 50)
          .bytes();
    });
    const answer a = ask(record_type::a, config_with({"127.0.0.1"}), server.port());
    CHECK(a.kind == answer_kind::positive);
    REQUIRE(a.addresses.size() == 2);
    CHECK(a.addresses[0] == ip("192.0.2.1"));
    CHECK(a.addresses[1] == ip("192.0.2.2"));
    CHECK(a.canonical_name == name);
    CHECK(a.ttl == seconds(50));
    CHECK(a.type == record_type::a);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("dns_client: AAAA is asked for as such", "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet& query, bool) {
    return dns_message(query).address_record(name, "2001:db8::1").bytes();
  });
  const answer a = ask(record_type::aaaa, config_with({"127.0.0.1"}), server.port());
  REQUIRE(a.addresses.size() == 1);
  CHECK(a.addresses[0] == ip("2001:db8::1"));
  const packet asked = server.last_query();
  CHECK(asked[asked.size() - 3] == 28);
  CHECK(dns_message::name_in(asked) == name);
}

TEST_CASE("dns_client: the canonical name is the end of the CNAME chain", "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet& query, bool) {
    return dns_message(query)
        .alias_record(name, "b.example.net", 20)
        .alias_record("b.example.net", "c.example.org")
        .address_record("c.example.org", "192.0.2.1")
        .bytes();
  });
  const answer a = ask(record_type::a, config_with({"127.0.0.1"}), server.port());
  CHECK(a.kind == answer_kind::positive);
  CHECK(a.canonical_name == "c.example.org");
  CHECK(a.ttl == seconds(20));
}

TEST_CASE("dns_client: negative answers are told apart and not asked twice",
          "[dns_client][ANSWER-5]") {
  with_functions functions;
  unsigned rcode = 0;
  answer_kind expected = answer_kind::no_data;
  SECTION("no data") {}
  SECTION("no such name") {
    rcode = 3;
    expected = answer_kind::name_error;
  }
  SECTION("format error is final, as in glibc") {
    rcode = 1;
    expected = answer_kind::odd;
  }
  dns_server server([rcode](const packet& query, bool) { return with_rcode(query, rcode); });
  const answer a = ask(record_type::a, config_with({"127.0.0.1"}), server.port());
  CHECK(a.kind == expected);
  CHECK(a.addresses.empty());
  CHECK(server.udp_queries() == 1);
}

TEST_CASE("dns_client: a truncated reply is fetched over TCP", "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet& query, bool tcp) {
    dns_message reply(query, 0, !tcp);
    if (tcp) {
      for (int i = 1; i <= 40; ++i) reply.address_record(name, "192.0.2." + std::to_string(i));
    }
    return reply.bytes();
  });
  const answer a = ask(record_type::a, config_with({"127.0.0.1"}), server.port());
  CHECK(a.kind == answer_kind::positive);
  CHECK(a.addresses.size() == 40);
  CHECK(server.udp_queries() == 1);
  CHECK(server.tcp_queries() == 1);
}

TEST_CASE("dns_client: a large reply over UDP that is whole is taken as it is", "[dns_client]") {
  with_functions functions;
  const std::size_t padding = GENERATE(400, 4000, 60000);
  dns_server server([padding](const packet& query, bool tcp) {
    dns_message reply(query);
    if (tcp) return packet{};
    for (int i = 1; i <= 40; ++i) reply.address_record(name, "192.0.2." + std::to_string(i));
    return reply.record(name, 16, 300, packet(padding)).bytes();
  });
  const answer a = ask(record_type::a, config_with({"127.0.0.1"}), server.port());
  CHECK(a.kind == answer_kind::positive);
  CHECK(a.addresses.size() == 40);
  CHECK(server.tcp_queries() == 0);
}

TEST_CASE("dns_client: a large reply to another question is passed over", "[dns_client]") {
  with_functions functions;
  int asked = 0;
  dns_server server([&asked](const packet& query, bool) {
    dns_message reply(query);
    reply.address_record(name, "192.0.2.1").record(name, 16, 300, packet(600));
    if (++asked == 1) reply.bytes()[14] ^= 1;  // a letter of the name
    return reply.bytes();
  });
  resolver_config config = config_with({"127.0.0.1"});
  config.attempts = 2;
  CHECK(ask(record_type::a, config, server.port()).kind == answer_kind::positive);
  CHECK(server.udp_queries() == 2);
  CHECK(server.tcp_queries() == 0);
}

// c-ares 1.34 would read every record, and write the reply anew.
TEST_CASE("dns_client: a reply is taken as it came, whatever else is in it", "[dns_client]") {
  with_functions functions;
  packet sent;
  std::function<packet(const packet& query)> reply;
  SECTION("names that are no host names") {
    reply = [](const packet& query) {
      return dns_message(query)
          .alias_record("a$b.test", "t.test")
          .address_record("t.test", "192.0.2.1")
          .bytes();
    };
  }
  SECTION("a record that is cut short") {
    reply = [](const packet& query) {
      dns_message message(query);
      return message.address_record(name, "192.0.2.1").record(name, 6, 300, packet(3)).bytes();
    };
  }
  SECTION("capitals, and no compression") {
    reply = [](const packet& query) {
      return dns_message(query).address_record("WWW.example.COM", "192.0.2.1").bytes();
    };
  }
  std::mutex sending;
  dns_server server([&](const packet& query, bool) {
    const std::lock_guard lock(sending);
    return sent = reply(query);
  });
  resolver_config config = config_with({"127.0.0.1"});
  for (const bool tcp : {false, true}) {
    CAPTURE(tcp);
    config.use_vc = tcp;
    const answer read = ask(record_type::a, config, server.port());
    CHECK(read.kind == answer_kind::positive);
    CHECK(read.addresses.size() == 1);
    auto query =
        dns_query::start(name, record_type::a, config, server.port(), query_reading::packet);
    const packet shown = test::finish(query.value()).packet;
    const std::lock_guard lock(sending);
    CHECK(shown == sent);
  }
}

TEST_CASE("dns_client: a nameserver that hangs up over TCP raises no signal", "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet& query, bool tcp) {
    return tcp ? packet{} : dns_message(query, 0, true).bytes();
  });
  const answer a = ask(record_type::a, config_with({"127.0.0.1"}), server.port());
  CHECK(a.kind == answer_kind::server_failure);
}

TEST_CASE("dns_client: garbage is no answer", "[dns_client]") {
  with_functions functions;
  packet garbage;
  SECTION("a few bytes") { garbage = {1, 2, 3}; }
  SECTION("a header that is not ours") { garbage = packet(12, 0xff); }
  dns_server server([&](const packet&, bool) { return garbage; });
  resolver_config config = config_with({"127.0.0.1"});
  config.attempts = 1;
  CHECK(ask(record_type::a, config, server.port()).kind == answer_kind::timed_out);
}

TEST_CASE("dns_client: another name's answer is not taken", "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet& query, bool) {
    auto other = dns_message::query_for("other.example.com", 1);
    other[0] = query[0];
    other[1] = query[1];
    return dns_message(other).address_record("other.example.com", "192.0.2.66").bytes();
  });
  resolver_config config = config_with({"127.0.0.1"});
  config.attempts = 1;
  CHECK(ask(record_type::a, config, server.port()).kind == answer_kind::timed_out);
}

TEST_CASE("dns_client: where EDNS meets silence the question is asked without", "[dns_client]") {
  with_functions functions;
  known_health().clear();
  dns_server server(
      [](const packet& query, bool) { return query[11] == 1 ? packet{} : address_reply(query); });
  resolver_config config = config_with({"127.0.0.1"});
  config.edns0 = true;
  CHECK(ask(record_type::a, config, server.port()).kind == answer_kind::positive);
  CHECK(server.udp_queries() == 2);
  CHECK(ask(record_type::a, config, server.port()).kind == answer_kind::positive);
  CHECK(server.udp_queries() == 3);
  known_health().clear();
}

TEST_CASE("dns_client: use-vc asks over TCP, trust-ad sets the bit", "[dns_client]") {
  with_functions functions;
  std::atomic<bool> over_tcp{false};
  std::atomic<bool> with_bit{false};
  dns_server server([&](const packet& query, bool tcp) {
    over_tcp = tcp;
    with_bit = (query[3] & 0x20) != 0;
    return address_reply(query);
  });
  resolver_config config = config_with({"127.0.0.1"});
  config.use_vc = true;
  config.trust_ad = true;
  CHECK(ask(record_type::a, config, server.port()).kind == answer_kind::positive);
  CHECK(over_tcp);
  CHECK(with_bit);
  CHECK(server.udp_queries() == 0);
}

TEST_CASE("dns_client: EDNS only if resolv.conf says so", "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet& query, bool) { return address_reply(query); });
  resolver_config config = config_with({"127.0.0.1"});
  SECTION("no") {
    ask(record_type::a, config, server.port());
    CHECK(server.last_query()[11] == 0);
  }
  SECTION("yes") {
    config.edns0 = true;
    ask(record_type::a, config, server.port());
    const packet query = server.last_query();
    const packet option = {0, 0, 41, 1200 >> 8, 1200 & 0xff};  // root, OPT, payload size
    CHECK(query[11] == 1);
    CHECK(std::search(query.begin(), query.end(), option.begin(), option.end()) != query.end());
  }
  SECTION("a nameserver that does not know EDNS is asked without") {
    config.edns0 = true;
    dns_server old([](const packet& query, bool) {
      return query[11] == 1 ? with_rcode(query, 1) : address_reply(query);
    });
    CHECK(ask(record_type::a, config, old.port()).kind == answer_kind::positive);
  }
}

}  // namespace happy
