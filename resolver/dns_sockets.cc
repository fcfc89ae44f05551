#include "resolver/dns_sockets.h"

#include <sys/syscall.h>

#include "shim/base/raw_syscall.h"

namespace happy {
namespace {

dns_sockets* from(void* self) { return static_cast<dns_sockets*>(self); }

}  // namespace

void dns_sockets::attach(ares_channel channel) {
  static constexpr ares_socket_functions functions{open, close, connect, receive, send};
  ares_set_socket_functions(channel, &functions, this);
}

void dns_sockets::watch(void* self, ares_socket_t fd, int readable, int writable) {
  entry* e = from(self)->find(fd);
  if (e == nullptr) return;
  e->events = static_cast<short>((readable != 0 ? POLLIN : 0) | (writable != 0 ? POLLOUT : 0));
}

bounded_vector<pollfd, max_query_fds> dns_sockets::poll_set() const {
  bounded_vector<pollfd, max_query_fds> all;
  for (const entry& e : entries_) {
    if (e.socket.valid() && e.events != 0) all.push_back({e.socket.get(), e.events, 0});
  }
  return all;
}

ares_socket_t dns_sockets::open(int domain, int type, int protocol, void* self) {
  entry* place = from(self)->find(-1);
  if (place == nullptr) {
    errno = EMFILE;
    return ARES_SOCKET_BAD;
  }
  result<guarded_socket> made =
      guarded_socket::adopt(real->socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
  if (!made.ok()) {
    errno = made.error();
    return ARES_SOCKET_BAD;
  }
  place->socket = std::move(made.value());
  place->events = 0;
  return place->socket.get();
}

int dns_sockets::close(ares_socket_t fd, void* self) {
  entry* e = from(self)->find(fd);
  if (e != nullptr) *e = {};
  return 0;
}

int dns_sockets::connect(ares_socket_t fd, const sockaddr* to, ares_socklen_t length, void* self) {
  return from(self)->owns(fd) ? real->connect(fd, to, length) : -1;
}

ares_ssize_t dns_sockets::receive(ares_socket_t fd, void* data, size_t size, int flags,
                                  sockaddr* from_address, ares_socklen_t* length, void* self) {
  if (!from(self)->owns(fd)) return -1;
  return real->recvfrom(fd, data, size, flags, from_address, length);
}

// Only the first part: c-ares takes a short count, and with one query there is one part. Not
// writev(), which would raise SIGPIPE in the program's thread when a nameserver hangs up.
ares_ssize_t dns_sockets::send(ares_socket_t fd, const iovec* parts, int count, void* self) {
  if (count < 1 || !from(self)->owns(fd)) return -1;
  const long sent = raw_syscall(SYS_sendto, fd, reinterpret_cast<long>(parts->iov_base),
                                static_cast<long>(parts->iov_len), MSG_NOSIGNAL);
  return as_libc(sent);
}

const dns_sockets::entry* dns_sockets::find(int fd) const {
  for (const entry& e : entries_) {
    if (e.socket.get() == fd) return &e;
  }
  return nullptr;
}

dns_sockets::entry* dns_sockets::find(int fd) {
  return const_cast<entry*>(static_cast<const dns_sockets*>(this)->find(fd));
}

// False, with EBADF, when the program has closed the descriptor under us.
bool dns_sockets::owns(int fd) const {
  const entry* e = find(fd);
  if (e != nullptr && e->socket.is_ours()) return true;
  errno = EBADF;
  return false;
}

}  // namespace happy
