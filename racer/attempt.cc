#include "racer/attempt.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

#include "shim/base/real_functions.h"

namespace happy {
namespace {

constexpr int so_netns_cookie = 71;  // not in glibc 2.36's headers

// The kernel's tcp_info, which is longer than glibc 2.36's.
struct long_tcp_info {
  std::uint8_t state;
  std::uint8_t unread[135];
  std::uint32_t segments_out;
};
static_assert(offsetof(long_tcp_info, segments_out) == 136);

std::uint64_t read_u64(int fd, int name) {
  std::uint64_t value = 0;
  socklen_t length = sizeof value;
  return real->getsockopt(fd, SOL_SOCKET, name, &value, &length) == 0 ? value : 0;
}

bool bind_like(const original_socket& original, int fd) {
  if (!original.bound) return true;
  const int late_port = 1;  // the port is chosen at connect(), so that many sockets can share it
  real->setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &late_port, sizeof late_port);
  const socket_address local = to_sockaddr({original.local, 0});
  return real->bind(fd, local.get(), local.length) == 0;
}

bool read_info(int fd, tcp_info& info) {
  socklen_t length = sizeof info;
  return real->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0;
}

// SO_ERROR is cleared by reading it.
bool take_error(int fd, int& error) {
  socklen_t length = sizeof error;
  return real->getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0;
}

started_attempt refused(int error) {
  return {.socket = {}, .error = error, .reached_network = false};
}

}  // namespace

bool same_network(int a, int b) {
  return read_u64(a, so_netns_cookie) == read_u64(b, so_netns_cookie);
}

started_attempt start_attempt(const original_socket& original, const endpoint& to) {
  const family f = to.address.family;
  result<guarded_socket> made = guarded_socket::adopt(
      real->socket(to_af(f), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, original.protocol));
  if (!made.ok()) return refused(made.error());
  const int fd = made.value().get();
  if (!same_network(original.fd, fd)) return refused(ENOTSUP);
  const result<options_digest> options =
      copy_options(original.fd, original.socket_family, fd, f, original.early);
  if (!options.ok()) return refused(ENOTSUP);
  if (!bind_like(original, fd)) return refused(ENOTSUP);
  want_soft_errors(fd, f);

  const socket_address target = to_sockaddr(to);
  const int error = real->connect(fd, target.get(), target.length) == 0 ? 0 : errno;
  return {.socket = std::move(made.value()),
          .error = error,
          .reached_network = error == 0 || error == EINPROGRESS,
          .options = options.value()};
}

// The kernel notes the state first and then waits for the packet that it is taking in: what poll() has told already the
// first look may not show (4 of 100 refused handshakes, measured by one thread that does nothing else), the second does.
int tcp_state(int fd) {
  tcp_info info{};
  if (!read_info(fd, info)) return no_tcp_state;
  if (is_handshake(info.tcpi_state) && !read_info(fd, info)) return no_tcp_state;
  return info.tcpi_state;
}

bool has_ended(const guarded_socket& socket) {
  return socket.is_ours() && tcp_state(socket.get()) == TCP_CLOSE;
}

bool is_connecting(int fd) { return is_handshake(tcp_state(fd)); }

bool has_connected(int fd) {
  const int state = tcp_state(fd);
  return state != no_tcp_state && state != TCP_CLOSE && !is_handshake(state);
}

bool was_taken_back(int fd) {
  long_tcp_info info{};
  socklen_t length = sizeof info;
  // The kernel has cleared its counters, too. The SYN of one that has failed is counted.
  return real->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
         length == sizeof info && info.state == TCP_CLOSE && info.segments_out == 0;
}

bool drop_what_arrives(int fd) {
  sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{.len = 1, .filter = nothing};
  return real->setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

void take_what_arrives(int fd) {
  const int unused = 0;
  real->setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused);
}

attempt_report examine_attempt(const guarded_socket& socket) {
  if (!socket.is_ours()) return {attempt_state::failed, EBADF};
  int error = 0;
  if (!take_error(socket.get(), error)) return {attempt_state::failed, errno};
  const int state = tcp_state(socket.get());
  if (state == no_tcp_state) return {attempt_state::failed, errno};
  if (is_handshake(state)) {
    return {error != 0 ? attempt_state::troubled : attempt_state::pending, error};
  }
  if (error == 0 && state != TCP_CLOSE) return {attempt_state::connected, 0};
  if (error == 0) take_error(socket.get(), error);  // it has ended since the first look
  return {attempt_state::failed, error != 0 ? error : ECONNABORTED};
}

bool is_endpoint_failure(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ETIMEDOUT:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRNOTAVAIL:  // the family is switched off
    case EACCES:         // a `prohibit` route, ICMP administratively prohibited
    case EPERM:          // the host's own firewall
    case EINVAL:         // a `blackhole` route
    case ENOPROTOOPT:    // ICMP protocol unreachable
    case EPROTO: return true;
    default: return false;
  }
}

}  // namespace happy
