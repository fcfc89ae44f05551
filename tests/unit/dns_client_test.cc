#include "resolver/dns_client.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "resolver/hidden_fd.h"
#include "resolver/nameserver_health.h"
#include "tests/support/addresses.h"
#include "tests/support/catch.h"
#include "tests/support/dns_message.h"
#include "tests/support/dns_server.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using test::dns_message;
using test::dns_server;
using test::ip;
using test::open_descriptors;
using test::with_functions;
using packet = dns_server::packet;
using std::chrono::seconds;
using wall = std::chrono::steady_clock;

constexpr const char* name = "www.example.com";

resolver_config config_with(const std::vector<std::string>& nameservers) {
  resolver_config config;
  for (const std::string& text : nameservers) config.nameservers.push_back(ip(text));
  config.timeout_s = 1;
  return config;
}

// The loop that lookup.cc has in earnest.
answer finish(dns_query& query) {
  const auto deadline = wall::now() + seconds(20);
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

answer ask(record_type type, const resolver_config& config, std::uint16_t port) {
  auto query = dns_query::start(name, type, config, port);
  REQUIRE(query.ok());
  return finish(query.value());
}

packet address_reply(const packet& query) {
  return dns_message(query).address_record(dns_message::name_in(query), "192.0.2.1").bytes();
}

packet with_rcode(const packet& query, unsigned rcode) { return dns_message(query, rcode).bytes(); }

// A port of this address where nobody listens: bound without listening, so that nobody else takes it.
class closed_port {
 public:
  explicit closed_port(const char* where)
      : where_(ip(where)), fd_(::socket(to_af(where_.family), SOCK_STREAM, 0)) {
    socket_address to = to_sockaddr({where_, 0});
    ::bind(fd_, to.get(), to.length);
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

TEST_CASE("dns_client: a nameserver that hangs up over TCP raises no signal", "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet& query, bool tcp) {
    return tcp ? packet{} : dns_message(query, 0, true).bytes();
  });
  const answer a = ask(record_type::a, config_with({"127.0.0.1"}), server.port());
  CHECK(a.kind == answer_kind::server_failure);
}

// c-ares 1.18 waits on, 1.34 goes to the next nameserver at once.
TEST_CASE("dns_client: garbage is no answer", "[dns_client]") {
  with_functions functions;
  packet garbage;
  SECTION("a few bytes") { garbage = {1, 2, 3}; }
  SECTION("a header that is not ours") { garbage = packet(12, 0xff); }
  dns_server server([&](const packet&, bool) { return garbage; });
  resolver_config config = config_with({"127.0.0.1"});
  config.attempts = 1;
  const answer a = ask(record_type::a, config, server.port());
  CHECK((a.kind == answer_kind::timed_out || a.kind == answer_kind::server_failure));
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

TEST_CASE("dns_client: a query destroyed in flight leaves nothing open", "[dns_client]") {
  with_functions functions;
  const int before = open_descriptors();
  {
    dns_server server([](const packet& query, bool tcp) {
      return tcp ? packet{} : dns_message(query, 0, true).bytes();
    });
    for (int turns = 0; turns < 3; ++turns) {
      auto query = dns_query::start(name, record_type::a, config_with({"127.0.0.1", "127.0.0.2"}),
                                    server.port());
      REQUIRE(query.ok());
      for (int i = 0; i < turns; ++i) {
        auto fds = query.value().poll_set();
        ::poll(fds.begin(), fds.size(), 200);
        for (const pollfd& fd : fds) query.value().process(fd.fd, fd.revents);
      }
    }
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("dns_client: its sockets are close-on-exec and non-blocking, and hidden when asked to be",
          "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet&, bool) { return packet{}; });
  const int before = open_descriptors();
  auto query = dns_query::start(name, record_type::a, config_with({"127.0.0.1"}), server.port());
  REQUIRE(query.ok());
  SECTION("in the call") {}
  SECTION("after it") {
    REQUIRE(query.value().hide());
    CHECK(query.value().poll_set()[0].fd >= first_hidden_fd);
  }
  const auto fds = query.value().poll_set();
  REQUIRE(fds.size() == 1);
  CHECK(fds[0].events == POLLIN);
  CHECK((::fcntl(fds[0].fd, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((::fcntl(fds[0].fd, F_GETFL) & O_NONBLOCK) != 0);
  CHECK(open_descriptors() == before + 1);
}

TEST_CASE("dns_client: a hidden query goes on, and hides what it opens later", "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet& query, bool tcp) {
    return tcp ? address_reply(query) : dns_message(query, 0, true).bytes();
  });
  auto query = dns_query::start(name, record_type::a, config_with({"127.0.0.1"}), server.port());
  REQUIRE(query.ok());
  REQUIRE(query.value().hide());
  std::optional<answer> a;
  while (!(a = query.value().take_answer())) {
    auto fds = query.value().poll_set();
    REQUIRE_FALSE(fds.empty());
    ::poll(fds.begin(), fds.size(), 1000);
    for (const pollfd& fd : fds) {
      CHECK(fd.fd >= first_hidden_fd);
      if (fd.revents != 0) query.value().process(fd.fd, fd.revents);
    }
    query.value().process_timeouts();
  }
  CHECK(a->kind == answer_kind::positive);
  CHECK(server.tcp_queries() == 1);
}

TEST_CASE("dns_client: a socket that is the program's now is not hidden", "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet&, bool) { return packet{}; });
  auto query = dns_query::start(name, record_type::a, config_with({"127.0.0.1"}), server.port());
  const int fd = query.value().poll_set()[0].fd;
  const int programs = ::socket(AF_INET, SOCK_DGRAM, 0);
  REQUIRE(::dup2(programs, fd) == fd);
  CHECK_FALSE(query.value().hide());
  query = result<dns_query>::failure(EINTR);
  CHECK(::fcntl(fd, F_GETFD) != -1);
  ::close(fd);
  ::close(programs);
}

TEST_CASE("dns_client: two queries have two source ports", "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet&, bool) { return packet{}; });
  auto first = dns_query::start(name, record_type::a, config_with({"127.0.0.1"}), server.port());
  auto second =
      dns_query::start(name, record_type::aaaa, config_with({"127.0.0.1"}), server.port());
  endpoint ends[2];
  int i = 0;
  for (dns_query* query : {&first.value(), &second.value()}) {
    socket_address own;
    own.length = sizeof own.storage;
    REQUIRE(::getsockname(query->poll_set()[0].fd, own.get(), &own.length) == 0);
    REQUIRE(from_sockaddr(own.get(), own.length, ends[i++]));
  }
  CHECK(ends[0].port != ends[1].port);
}

TEST_CASE("dns_client: a socket closed by the program, its number used again, is left alone",
          "[dns_client]") {
  with_functions functions;
  dns_server server([](const packet&, bool) { return packet{}; });
  auto query = dns_query::start(name, record_type::a, config_with({"127.0.0.1"}), server.port());
  REQUIRE(query.ok());
  const int fd = query.value().poll_set()[0].fd;
  const int programs = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  REQUIRE(::dup2(programs, fd) == fd);
  ::close(programs);
  query.value().process(fd, POLLIN);
  query = result<dns_query>::failure(EINTR);
  CHECK(::fcntl(fd, F_GETFD) != -1);
  ::close(fd);
}

TEST_CASE("dns_client: without descriptors a query fails and the program keeps its errno",
          "[dns_client]") {
  happy_real functions = test::libc_functions();
  functions.socket = [](int, int, int) {
    errno = EMFILE;
    return -1;
  };
  with_functions use(functions);
  errno = ENOTTY;
  auto query = dns_query::start(name, record_type::a, config_with({"127.0.0.1"}));
  REQUIRE(query.ok());
  CHECK(errno == ENOTTY);
  const auto a = query.value().take_answer();
  REQUIRE(a.has_value());
  CHECK(a->kind == answer_kind::not_sent);
  CHECK_FALSE(query.value().take_answer().has_value());
  CHECK_FALSE(query.value().until_timeout().has_value());
  CHECK(query.value().poll_set().empty());
}

TEST_CASE("dns_client: system calls that fail leave nothing open", "[dns_client]") {
  static int fail_at;
  static int calls;
  happy_real functions = test::libc_functions();
  functions.socket = [](int domain, int type, int protocol) {
    if (++calls == fail_at) {
      errno = EMFILE;
      return -1;
    }
    return ::socket(domain, type, protocol);
  };
  functions.connect = [](int fd, const sockaddr* to, socklen_t length) {
    if (++calls == fail_at) {
      errno = ENETUNREACH;
      return -1;
    }
    return ::connect(fd, to, length);
  };
  functions.recvfrom = [](int fd, void* data, size_t size, int flags, sockaddr* from,
                          socklen_t* length) -> ssize_t {
    if (++calls == fail_at) {
      errno = ECONNREFUSED;
      return -1;
    }
    return ::recvfrom(fd, data, size, flags, from, length);
  };
  with_functions use(functions);
  dns_server server([](const packet& query, bool tcp) {
    return tcp ? address_reply(query) : dns_message(query, 0, true).bytes();
  });
  // The nameserver in this process opens and closes too, but below.
  const int before = open_descriptors(first_hidden_fd);
  bool untouched = false;
  for (fail_at = 1; !untouched; ++fail_at) {
    REQUIRE(fail_at < 50);
    calls = 0;
    CHECK(ask(record_type::a, config_with({"127.0.0.1"}), server.port()).kind ==
          answer_kind::positive);
    untouched = calls < fail_at;
    CHECK(open_descriptors(first_hidden_fd) == before);
  }
}

}  // namespace happy
