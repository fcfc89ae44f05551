#include "resolver/dns_channel.h"

#include <sys/wait.h>

#include <string>
#include <thread>
#include <vector>

#include "resolver/dns_client.h"
#include "tests/support/dns_queries.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using namespace test;

dns_query start(const resolver_config& config, std::uint16_t port) {
  auto query = dns_query::start(name, record_type::a, config, port);
  REQUIRE(query.ok());
  return std::move(query.value());
}

// How many there are after so many could be kept.
int kept(int most) { return keeps_idle_channels() ? most : 0; }

// Also in threads, where Catch claims nothing.
answer finish(dns_query query) {
  for (;;) {
    if (auto a = query.take_answer()) return *a;
    auto fds = query.poll_set();
    ::poll(fds.begin(), fds.size(), 1100);
    for (const pollfd& fd : fds) {
      if (fd.revents != 0) query.process(fd.fd, fd.revents);
    }
    query.process_timeouts();
  }
}

}  // namespace

TEST_CASE("dns_channel: an answered query leaves its channel to the next, and no descriptor",
          "[dns_channel]") {
  with_functions functions;
  drop_idle_channels();
  dns_server server([](const packet& query, bool) { return address_reply(query); });
  const int before = open_descriptors();
  for (int i = 0; i < 3; ++i) {
    CHECK(finish(start(config_with({"127.0.0.1"}), server.port())).kind == answer_kind::positive);
    CHECK(idle_channel_count() == kept(1));
    CHECK(open_descriptors() == before);
  }
}

TEST_CASE("dns_channel: a kept channel asks the nameserver of its new query", "[dns_channel]") {
  with_functions functions;
  drop_idle_channels();
  dns_server first([](const packet& query, bool) { return address_reply(query); });
  dns_server second([](const packet& query, bool) { return address_reply(query); }, "127.0.0.2",
                    first.port());
  finish(start(config_with({"127.0.0.1"}), first.port()));
  finish(start(config_with({"127.0.0.2"}), first.port()));
  CHECK(first.udp_queries() == 1);
  CHECK(second.udp_queries() == 1);
  CHECK(idle_channel_count() == kept(1));
}

TEST_CASE("dns_channel: other options make a new channel and end the old one", "[dns_channel]") {
  with_functions functions;
  drop_idle_channels();
  dns_server server([](const packet& query, bool) { return address_reply(query); });
  resolver_config config = config_with({"127.0.0.1"});
  finish(start(config, server.port()));
  config.edns0 = true;
  finish(start(config, server.port()));
  CHECK(server.last_query()[11] == 1);
  CHECK(idle_channel_count() == kept(1));
}

TEST_CASE("dns_channel: what went in any other way is not kept", "[dns_channel]") {
  with_functions functions;
  drop_idle_channels();
  resolver_config config = config_with({"127.0.0.1"});
  std::atomic<int> asked{0};
  dns_server::handler reply;
  SECTION("in flight") {
    dns_server silent([](const packet&, bool) { return packet{}; });
    start(config, silent.port());
    CHECK(idle_channel_count() == 0);
    return;
  }
  SECTION("over TCP") {
    reply = [](const packet& query, bool tcp) {
      return tcp ? address_reply(query) : dns_message(query, 0, true).bytes();
    };
  }
  SECTION("in a second round") {
    reply = [&](const packet& query, bool) {
      return ++asked == 1 ? with_rcode(query, 2) : address_reply(query);
    };
  }
  SECTION("without the EDNS that was refused") {
    config.edns0 = true;
    reply = [](const packet& query, bool) {
      return query[11] == 1 ? with_rcode(query, 1) : address_reply(query);
    };
  }
  SECTION("without an answer") {
    reply = [](const packet& query, bool) { return with_rcode(query, 2); };
  }
  dns_server server(reply);
  finish(start(config, server.port()));
  CHECK(idle_channel_count() == 0);
}

TEST_CASE("dns_channel: no more than max_idle_channels are kept", "[dns_channel]") {
  with_functions functions;
  drop_idle_channels();
  dns_server server([](const packet& query, bool) { return address_reply(query); });
  std::vector<dns_query> queries;
  for (std::size_t i = 0; i < max_idle_channels + 2; ++i)
    queries.push_back(start(config_with({"127.0.0.1"}), server.port()));
  for (dns_query& query : queries) finish(std::move(query));
  CHECK(idle_channel_count() == kept(static_cast<int>(max_idle_channels)));
}

TEST_CASE("dns_channel: a forked child has none of them", "[dns_channel]") {
  with_functions functions;
  drop_idle_channels();
  {
    dns_server server([](const packet& query, bool) { return address_reply(query); });
    finish(start(config_with({"127.0.0.1"}), server.port()));
  }
  const pid_t child = ::fork();
  if (child == 0) ::_exit(idle_channel_count());
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(idle_channel_count() == kept(1));
}

TEST_CASE("dns_channel: threads share them", "[dns_channel]") {
  with_functions functions;
  drop_idle_channels();
  dns_server server([](const packet& query, bool) { return address_reply(query); });
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn) {
        auto query =
            dns_query::start(name, record_type::a, config_with({"127.0.0.1"}), server.port());
        if (finish(std::move(query.value())).kind == answer_kind::positive) ++answered;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(answered == 200);
  CHECK(idle_channel_count() <= 4);
}

}  // namespace happy
