// A nameserver on loopback in a thread of its own, UDP and TCP on one port.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/addresses.h"

namespace happy::test {

class dns_server {
 public:
  using packet = std::vector<std::uint8_t>;
  // The reply to a query; empty: silence, over TCP a closed connection.
  using handler = std::function<packet(const packet& query, bool tcp)>;

  // `port` 0: any that is free on `where` for both protocols.
  explicit dns_server(handler answer, const char* where = "127.0.0.1", std::uint16_t port = 0)
      : answer_(std::move(answer)), stop_(::eventfd(0, EFD_CLOEXEC)) {
    for (int tries = 0; tries < 50 && !listen_on(where, port); ++tries) {
    }
    if (tcp_ < 0) throw std::runtime_error("no port for the test's nameserver");
    thread_ = std::thread([this] { serve(); });
  }
  ~dns_server() {
    eventfd_write(stop_, 1);
    thread_.join();
    for (const int fd : {udp_, tcp_, stop_}) ::close(fd);
  }
  dns_server(const dns_server&) = delete;
  dns_server& operator=(const dns_server&) = delete;

  std::uint16_t port() const { return port_; }
  int udp_queries() const { return udp_queries_; }
  int tcp_queries() const { return tcp_queries_; }
  packet last_query() const {
    const std::lock_guard lock(mutex_);
    return last_query_;
  }

 private:
  bool listen_on(const char* where, std::uint16_t port) {
    const address here = ip(where);
    udp_ = ::socket(to_af(here.family), SOCK_DGRAM | SOCK_CLOEXEC, 0);
    tcp_ = ::socket(to_af(here.family), SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(tcp_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    socket_address to = to_sockaddr({here, port});
    socklen_t length = to.length;
    endpoint bound;
    if (::bind(udp_, to.get(), to.length) == 0 && ::getsockname(udp_, to.get(), &length) == 0 &&
        from_sockaddr(to.get(), length, bound)) {
      to = to_sockaddr(bound);
      if (::bind(tcp_, to.get(), to.length) == 0 && ::listen(tcp_, 8) == 0) {
        port_ = bound.port;
        return true;
      }
    }
    ::close(udp_);
    ::close(tcp_);
    udp_ = tcp_ = -1;
    return false;
  }

  void serve() {
    for (;;) {
      pollfd fds[] = {{udp_, POLLIN, 0}, {tcp_, POLLIN, 0}, {stop_, POLLIN, 0}};
      ::poll(fds, 3, -1);
      if (fds[2].revents != 0) return;
      if (fds[0].revents != 0) serve_datagram();
      if (fds[1].revents != 0) serve_connection();
    }
  }

  packet reply_to(const packet& query, bool tcp) {
    ++(tcp ? tcp_queries_ : udp_queries_);
    {
      const std::lock_guard lock(mutex_);
      last_query_ = query;
    }
    return answer_(query, tcp);
  }

  void serve_datagram() {
    packet query(4096);
    sockaddr_storage from;
    socklen_t length = sizeof from;
    const ssize_t size = ::recvfrom(udp_, query.data(), query.size(), 0,
                                    reinterpret_cast<sockaddr*>(&from), &length);
    if (size <= 0) return;
    query.resize(static_cast<std::size_t>(size));
    const packet reply = reply_to(query, false);
    if (!reply.empty())
      ::sendto(udp_, reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from), length);
  }

  void serve_connection() {
    const int fd = ::accept4(tcp_, nullptr, nullptr, SOCK_CLOEXEC);
    std::uint8_t size[2];
    if (::recv(fd, size, 2, MSG_WAITALL) == 2) {
      packet query(static_cast<std::size_t>(size[0] << 8 | size[1]));
      if (::recv(fd, query.data(), query.size(), MSG_WAITALL) ==
          static_cast<ssize_t>(query.size())) {
        packet reply = reply_to(query, true);
        const auto length = reply.size();
        if (!reply.empty()) {
          reply.insert(reply.begin(),
                       {static_cast<std::uint8_t>(length >> 8), static_cast<std::uint8_t>(length)});
          ::send(fd, reply.data(), reply.size(), MSG_NOSIGNAL);
        }
      }
    }
    ::close(fd);
  }

  handler answer_;
  int stop_;
  int udp_ = -1;
  int tcp_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> udp_queries_{0};
  std::atomic<int> tcp_queries_{0};
  mutable std::mutex mutex_;
  packet last_query_;
  std::thread thread_;
};

}  // namespace happy::test
