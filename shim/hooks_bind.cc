// The hook of bind(): a socket that the program takes for an IPv4 one is bound as one. It remembers which sockets left
// the choice of the port to the kernel. Later both look alike, but only a port that the program chose itself keeps its
// connect() from being raced.

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>

#include "shim/base/endpoint.h"
#include "shim/bound_ports.h"
#include "shim/late_function.h"
#include "shim/translated.h"

namespace happy {
namespace {

constinit late_function<decltype(&::bind)> real_bind{"bind"};

// A bit per descriptor, written by every bind() and so always that of the last one. Sockets with higher
// numbers count as bound by the program's choice.
constexpr unsigned counted = 4096;
constinit std::atomic<std::uint64_t> free_choice[counted / 64]{};

void note(int fd, const sockaddr* to, socklen_t length) {
  endpoint local;
  if (static_cast<unsigned>(fd) >= counted || !from_sockaddr(to, length, local)) return;
  const std::uint64_t bit = std::uint64_t{1} << (fd % 64);
  std::atomic<std::uint64_t>& word = free_choice[fd / 64];
  if (local.port == 0) {
    word.fetch_or(bit, std::memory_order_relaxed);
  } else {
    word.fetch_and(~bit, std::memory_order_relaxed);
  }
}

// A translated socket (a connect() by way of the NAT64 has failed) takes no IPv4 address: the kernel has said EINVAL.
[[gnu::noinline]] int bind_translated(int fd, const sockaddr* to, socklen_t length) {
  endpoint local;
  translated_socket s;
  if (length > sizeof(sockaddr_storage) || !from_sockaddr(to, length, local)) return -1;
  if (local.address.family != family::ipv4 || !is_translated(fd, s)) return -1;
  const bool any = local.address.bytes == address{}.bytes;
  const address as = any ? address{.family = family::ipv6} : mapped(local.address);
  const socket_address name = to_sockaddr({as, local.port});
  return real_bind.get()(fd, name.get(), name.length);
}

}  // namespace

bool port_was_left_to_kernel(int fd) {
  if (static_cast<unsigned>(fd) >= counted) return false;
  return (free_choice[fd / 64].load(std::memory_order_relaxed) >> (fd % 64) & 1) != 0;
}

}  // namespace happy

extern "C" __attribute__((visibility("default"))) int bind(int fd, const sockaddr* to,
                                                           socklen_t length) noexcept {
  int result = happy::real_bind.get()(fd, to, length);
  if (result != 0 && happy::any_translated() && errno == EINVAL)
    result = happy::bind_translated(fd, to, length);
  if (result == 0) happy::note(fd, to, length);
  return result;
}
