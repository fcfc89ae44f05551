// The sockets of queries: hidden, closed, left alone where they are the program's, and none where calls fail.

#include "resolver/dns_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "resolver/hidden_fd.h"
#include "tests/support/dns_queries.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using namespace test;

}  // namespace

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
