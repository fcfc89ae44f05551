#include "racer/attempt.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "tests/support/catch.h"
#include "tests/support/libc_functions.h"

namespace happy {
namespace {

using test::libc_functions;
using test::with_functions;

// What TCP_INFO shows at its first look, and from the second on.
int first_state = 0;
int later_state = 0;
int looks = 0;

int getsockopt_of_a_packet_on_its_way(int fd, int level, int name, void* value, socklen_t* length) {
  if (level != IPPROTO_TCP || name != TCP_INFO) return ::getsockopt(fd, level, name, value, length);
  static_cast<tcp_info*>(value)->tcpi_state =
      static_cast<std::uint8_t>(looks++ == 0 ? first_state : later_state);
  return 0;
}

// The error is there only once the state has been looked at.
int getsockopt_of_a_reset_on_its_way(int fd, int level, int name, void* value, socklen_t* length) {
  if (level != SOL_SOCKET || name != SO_ERROR)
    return getsockopt_of_a_packet_on_its_way(fd, level, name, value, length);
  *static_cast<int*>(value) = looks == 0 ? 0 : ECONNREFUSED;
  return 0;
}

happy_real functions_while(int first, int later) {
  happy_real functions = libc_functions();
  functions.getsockopt = getsockopt_of_a_packet_on_its_way;
  first_state = first;
  later_state = later;
  looks = 0;
  return functions;
}

int some_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

}  // namespace

TEST_CASE("attempt: an end that the kernel is just noting is seen, and its error left alone",
          "[attempt]") {
  const with_functions functions(functions_while(TCP_SYN_SENT, TCP_CLOSE));
  const result<guarded_socket> socket = guarded_socket::adopt(some_socket());
  REQUIRE(socket.ok());
  CHECK(has_ended(socket.value()));
}

TEST_CASE("attempt: a connection that the kernel is just noting is seen", "[attempt]") {
  const with_functions functions(functions_while(TCP_SYN_SENT, TCP_ESTABLISHED));
  const int fd = some_socket();
  CHECK(has_connected(fd));
  ::close(fd);
}

TEST_CASE("attempt: a handshake is one at the second look, too", "[attempt]") {
  const with_functions functions(functions_while(TCP_SYN_SENT, TCP_SYN_SENT));
  const int fd = some_socket();
  CHECK(is_connecting(fd));
  CHECK(!has_connected(fd));
  ::close(fd);
}

TEST_CASE(
    "attempt: a reset between the look at its error and the look at its state is told as what it "
    "was",
    "[attempt]") {
  happy_real functions = functions_while(TCP_CLOSE, TCP_CLOSE);
  functions.getsockopt = getsockopt_of_a_reset_on_its_way;
  const with_functions table(functions);
  const result<guarded_socket> socket = guarded_socket::adopt(some_socket());
  REQUIRE(socket.ok());
  const attempt_report report = examine_attempt(socket.value());
  CHECK(report.state == attempt_state::failed);
  CHECK(report.error == ECONNREFUSED);
}

TEST_CASE("attempt: what is no socket has no state", "[attempt]") {
  const with_functions functions;
  CHECK(tcp_state(-1) == no_tcp_state);
  CHECK(!is_connecting(-1));
  CHECK(!has_connected(-1));
}

}  // namespace happy
