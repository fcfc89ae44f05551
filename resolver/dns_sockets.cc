#include "resolver/dns_sockets.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>

#include "shim/base/raw_syscall.h"

namespace happy {
namespace {

dns_sockets* from(void* self) { return static_cast<dns_sockets*>(self); }

// The size of the next datagram; 0: there is none, or the kernel does not say.
std::size_t next_datagram(int fd) {
  int size = 0;
  const long asked = raw_syscall(SYS_ioctl, fd, FIONREAD, reinterpret_cast<long>(&size));
  return asked == 0 && size > 0 ? static_cast<std::size_t>(size) : 0;
}

}  // namespace

void dns_sockets::attach(ares_channel channel) {
  static constexpr ares_socket_functions functions{open, close, connect, receive, send};
  ares_set_socket_functions(channel, &functions, this);
}

void dns_sockets::watch(void* self, ares_socket_t place, int readable, int writable) {
  entry* e = from(self)->at(place);
  if (e == nullptr) return;
  e->events = static_cast<short>((readable != 0 ? POLLIN : 0) | (writable != 0 ? POLLOUT : 0));
}

void dns_sockets::begin_query(std::uint32_t scope) {
  scope_ = scope;
  hidden_ = false;
  packets_sent_ = 0;
  reply_.forget();
}

void dns_sockets::begin_turn() {
  for (entry& e : entries_) e.checked = false;
}

bool dns_sockets::hide() {
  hidden_ = true;
  return std::all_of(std::begin(entries_), std::end(entries_),
                     [](entry& e) { return !e.socket.valid() || e.socket.hide(); });
}

void dns_sockets::close_all() {
  for (entry& e : entries_) e.socket.reset();
}

bounded_vector<pollfd, max_channel_fds> dns_sockets::poll_set() const {
  bounded_vector<pollfd, max_channel_fds> all;
  for (const entry& e : entries_) {
    if (e.socket.valid() && e.events != 0) all.push_back({e.socket.get(), e.events, 0});
  }
  return all;
}

ares_socket_t dns_sockets::place_of(int fd) const {
  for (const entry& e : entries_) {
    if (e.socket.valid() && e.socket.get() == fd)
      return static_cast<ares_socket_t>(&e - std::begin(entries_));
  }
  return ARES_SOCKET_BAD;
}

bool dns_sockets::none_open() const {
  return std::none_of(std::begin(entries_), std::end(entries_),
                      [](const entry& e) { return e.socket.valid(); });
}

// In the program's way until it has its answer, as glibc's own sockets are: most are closed by then.
ares_socket_t dns_sockets::open(int domain, int type, int protocol, void* self) {
  dns_sockets& s = *from(self);
  entry* free = std::find_if(std::begin(s.entries_), std::end(s.entries_),
                             [](const entry& e) { return !e.socket.valid(); });
  if (free == std::end(s.entries_)) {
    errno = EMFILE;
    return ARES_SOCKET_BAD;
  }
  const int fd = real->socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
  result<guarded_socket> made = guarded_socket::own(fd);
  if (!made.ok() || (s.hidden_ && !made.value().hide())) {
    errno = made.ok() ? EMFILE : made.error();
    return ARES_SOCKET_BAD;
  }
  free->socket = std::move(made.value());
  free->events = 0;
  free->checked = true;
  free->datagrams = type == SOCK_DGRAM;
  return static_cast<ares_socket_t>(free - std::begin(s.entries_));
}

int dns_sockets::close(ares_socket_t place, void* self) {
  entry* e = from(self)->at(place);
  if (e == nullptr) return 0;
  if (e->checked) e->socket.close_unasked();
  *e = {};
  return 0;
}

int dns_sockets::connect(ares_socket_t place, const sockaddr* to, ares_socklen_t length,
                         void* self) {
  const int fd = from(self)->descriptor(place);
  if (fd < 0) return -1;
  endpoint where;
  if (from(self)->scope_ == 0 || !from_sockaddr(to, length, where))
    return real->connect(fd, to, length);
  where.address.scope = from(self)->scope_;
  const socket_address scoped = to_sockaddr(where);
  return real->connect(fd, scoped.get(), scoped.length);
}

ares_ssize_t dns_sockets::receive(ares_socket_t place, void* data, size_t size, int flags,
                                  sockaddr* from_address, ares_socklen_t* length, void* self) {
  dns_sockets& s = *from(self);
  const int fd = s.descriptor(place);
  if (fd < 0) return -1;
  const std::span<std::uint8_t> shown(static_cast<std::uint8_t*>(data), size);
  if (s.at(place)->datagrams) return s.receive_datagram(fd, shown, flags, from_address, length);
  const ssize_t count = real->recvfrom(fd, data, size, flags, from_address, length);
  if (count > 0) s.reply_.keep_part(shown.first(static_cast<std::size_t>(count)));
  return count;
}

// c-ares is shown no more than it needs to know its query by. Of all that is larger than 512 bytes (RFC 1035 s4.2.1)
// 1.18 asks again over TCP, even where nothing is missing, and 1.34 believes that one message which it cannot read is
// the server's, whoever sent it. glibc, and so everybody, reads the former and waits on after the latter.
ares_ssize_t dns_sockets::receive_datagram(int fd, std::span<std::uint8_t> shown, int flags,
                                           sockaddr* from, ares_socklen_t* length) {
  const std::size_t whole = next_datagram(fd);
  const std::unique_ptr<std::uint8_t[]> large(
      whole > shown.size() ? new (std::nothrow) std::uint8_t[whole] : nullptr);
  const std::span<std::uint8_t> room = large == nullptr ? shown : std::span(large.get(), whole);
  const ssize_t count = real->recvfrom(fd, room.data(), room.size(), flags, from, length);
  if (count < 0) return count;
  const std::span<const std::uint8_t> message = room.first(static_cast<std::size_t>(count));
  if (!reply_.answers(message)) {
    errno = EAGAIN;
    return -1;
  }
  reply_.keep(message);
  const std::size_t head = reply_.write_head(shown);
  if (head != 0) return static_cast<ares_ssize_t>(head);
  // Without memory it is c-ares's.
  std::copy_n(message.begin(), std::min(message.size(), shown.size()), shown.begin());
  return static_cast<ares_ssize_t>(std::min(message.size(), shown.size()));
}

// Only the first part: c-ares takes a short count, and with one query there is one part. Not
// writev(), which would raise SIGPIPE in the program's thread when a nameserver hangs up.
ares_ssize_t dns_sockets::send(ares_socket_t place, const iovec* parts, int count, void* self) {
  const int fd = from(self)->descriptor(place);
  if (fd < 0 || count < 1) return -1;
  ++from(self)->packets_sent_;
  const std::span<const std::uint8_t> all(static_cast<const std::uint8_t*>(parts->iov_base),
                                          parts->iov_len);
  const std::size_t length_size = from(self)->at(place)->datagrams ? 0 : 2;
  from(self)->reply_.expect(all.subspan(std::min(length_size, all.size())));
  const long sent = raw_syscall(SYS_sendto, fd, reinterpret_cast<long>(parts->iov_base),
                                static_cast<long>(parts->iov_len), MSG_NOSIGNAL);
  return as_libc(sent);
}

dns_sockets::entry* dns_sockets::at(ares_socket_t place) {
  const bool known = place >= 0 && static_cast<std::size_t>(place) < max_channel_fds;
  return known && entries_[place].socket.valid() ? &entries_[place] : nullptr;
}

// -1, with EBADF, when the program has closed the descriptor under us.
int dns_sockets::descriptor(ares_socket_t place) {
  entry* e = at(place);
  if (e != nullptr && !e->checked) e->checked = e->socket.is_ours();
  if (e != nullptr && e->checked) return e->socket.get();
  errno = EBADF;
  return -1;
}

}  // namespace happy
