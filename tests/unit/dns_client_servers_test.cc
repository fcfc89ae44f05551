// Nameservers that fail, keep silent, are slow or out of reach: which is asked, when, and which then.

#include "resolver/dns_client.h"

#include <atomic>
#include <thread>

#include "resolver/nameserver_health.h"
#include "tests/support/dns_queries.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using std::chrono::seconds;
using namespace test;

// A port of this address where nobody listens: bound without listening, so that nobody else takes it.
class closed_port {
 public:
  explicit closed_port(const char* where)
      : where_(ip(where)), fd_(::socket(to_af(where_.family), SOCK_STREAM, 0)) {
    socket_address to = to_sockaddr({where_, 0});
    if (::bind(fd_, to.get(), to.length) != 0) return;
    socklen_t length = sizeof to.storage;
    ::getsockname(fd_, to.get(), &length);
    endpoint bound;
    from_sockaddr(to.get(), length, bound);
    port = bound.port;
  }
  ~closed_port() { ::close(fd_); }

  std::uint16_t port = 0;

 private:
  address where_;
  int fd_;
};

}  // namespace

TEST_CASE("dns_client: a nameserver that fails is asked once per round, without waiting",
          "[dns_client][ANSWER-5]") {
  with_functions functions;
  for (const unsigned rcode : {2u, 4u, 5u}) {
    dns_server server([rcode](const packet& query, bool) { return with_rcode(query, rcode); });
    const auto begin = wall::now();
    const answer a = ask(record_type::a, config_with({"127.0.0.1"}), server.port());
    CHECK(a.kind == answer_kind::server_failure);
    CHECK(server.udp_queries() == 2);
    CHECK(wall::now() - begin < seconds(1));
  }
}

TEST_CASE("dns_client: the nameserver after a failing one is asked at once", "[dns_client]") {
  with_functions functions;
  dns_server failing([](const packet& query, bool) { return with_rcode(query, 2); });
  dns_server working([](const packet& query, bool) { return address_reply(query); }, "127.0.0.2",
                     failing.port());
  const auto begin = wall::now();
  const answer a = ask(record_type::a, config_with({"127.0.0.1", "127.0.0.2"}), failing.port());
  CHECK(a.kind == answer_kind::positive);
  CHECK(failing.udp_queries() == 1);
  CHECK(wall::now() - begin < seconds(1));
}

TEST_CASE("dns_client: a nameserver that knows nothing and asks nobody has failed",
          "[dns_client]") {
  with_functions functions;
  int asked = 0;
  dns_server server([&asked](const packet& query, bool) {
    dns_message reply(query);
    if (++asked == 1)
      reply.bytes()[3] = 0;  // no recursion
    else
      reply.address_record(name, "192.0.2.1");
    return reply.bytes();
  });
  resolver_config config = config_with({"127.0.0.1"});
  config.attempts = 2;
  CHECK(ask(record_type::a, config, server.port()).kind == answer_kind::positive);
}

TEST_CASE("dns_client: what fails in one round may work in the next", "[dns_client]") {
  with_functions functions;
  std::atomic<int> asked{0};
  dns_server server([&](const packet& query, bool) {
    return ++asked == 1 ? with_rcode(query, 2) : address_reply(query);
  });
  CHECK(ask(record_type::a, config_with({"127.0.0.1"}), server.port()).kind ==
        answer_kind::positive);
}

TEST_CASE("dns_client: silence lasts timeout x attempts, as in glibc, without doubling",
          "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet&, bool) { return packet{}; });
  resolver_config config = config_with({"127.0.0.1"});
  config.attempts = 3;
  const auto begin = wall::now();
  const answer a = ask(record_type::a, config, server.port());
  const auto took = wall::now() - begin;
  CHECK(a.kind == answer_kind::timed_out);
  CHECK(server.udp_queries() == 3);
  CHECK(took > milliseconds(2900));
  CHECK(took < milliseconds(4500));
}

TEST_CASE("dns_client: a silent nameserver is overtaken, and asked last for a while",
          "[dns_client][SERVER-1]") {
  with_functions functions;
  known_health().clear();
  dns_server silent([](const packet&, bool) { return packet{}; });
  dns_server working([](const packet& query, bool) { return address_reply(query); }, "127.0.0.2",
                     silent.port());
  const resolver_config config = config_with({"127.0.0.1", "127.0.0.2"});
  auto begin = wall::now();
  CHECK(ask(record_type::a, config, silent.port()).kind == answer_kind::positive);
  CHECK(wall::now() - begin > milliseconds(290));
  CHECK(wall::now() - begin < milliseconds(800));
  begin = wall::now();
  CHECK(ask(record_type::a, config, silent.port()).kind == answer_kind::positive);
  CHECK(wall::now() - begin < milliseconds(200));
  CHECK(silent.udp_queries() == 1);
  known_health().clear();
}

TEST_CASE("dns_client: an overtaken nameserver that answers after all is heard", "[dns_client]") {
  with_functions functions;
  known_health().clear();
  dns_server slow([](const packet& query, bool) {
    std::this_thread::sleep_for(milliseconds(500));
    return address_reply(query);
  });
  dns_server silent([](const packet&, bool) { return packet{}; }, "127.0.0.2", slow.port());
  const auto begin = wall::now();
  CHECK(ask(record_type::a, config_with({"127.0.0.1", "127.0.0.2"}), slow.port()).kind ==
        answer_kind::positive);
  CHECK(wall::now() - begin < milliseconds(950));  // within the first round
  known_health().clear();
}

TEST_CASE("dns_client: a closed port is noticed at once", "[dns_client]") {
  with_functions functions;
  SECTION("and the next nameserver asked") {
    dns_server working([](const packet& query, bool) { return address_reply(query); }, "127.0.0.2");
    const auto begin = wall::now();
    CHECK(ask(record_type::a, config_with({"127.0.0.1", "127.0.0.2"}), working.port()).kind ==
          answer_kind::positive);
    CHECK(wall::now() - begin < milliseconds(900));
  }
  SECTION("and if there is no other, the query ends") {
    const closed_port closed("127.0.0.1");
    const auto begin = wall::now();
    CHECK(ask(record_type::a, config_with({"127.0.0.1"}), closed.port).kind ==
          answer_kind::server_failure);
    CHECK(wall::now() - begin < milliseconds(900));
  }
}

TEST_CASE("dns_client: IPv6 nameservers come first", "[dns_client]") {
  with_functions functions;
  dns_server v4([](const packet& query, bool) { return address_reply(query); });
  dns_server v6([](const packet& query, bool) { return address_reply(query); }, "::1", v4.port());
  CHECK(ask(record_type::a, config_with({"127.0.0.1", "::1"}), v4.port()).kind ==
        answer_kind::positive);
  CHECK(v6.udp_queries() == 1);
  CHECK(v4.udp_queries() == 0);
}

TEST_CASE("dns_client: an unreachable nameserver is passed over", "[dns_client]") {
  with_functions functions;
  dns_server working([](const packet& query, bool) { return address_reply(query); });
  // connect() to the broadcast address fails with EACCES
  CHECK(ask(record_type::a, config_with({"255.255.255.255", "127.0.0.1"}), working.port()).kind ==
        answer_kind::positive);
}

}  // namespace happy
