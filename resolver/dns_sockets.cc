#include "resolver/dns_sockets.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "shim/base/raw_syscall.h"

namespace happy {
namespace {

// RFC 1035 s4.2.1: what c-ares takes for a whole datagram, whoever sent it. What is larger it asks for again over TCP,
// even where nothing is missing; glibc, and so everybody, reads it.
constexpr std::size_t usual_datagram = 512;

dns_sockets* from(void* self) { return static_cast<dns_sockets*>(self); }

// The size of the next datagram; 0: there is none, or the kernel does not say.
std::size_t next_datagram(int fd) {
  int size = 0;
  const long asked = raw_syscall(SYS_ioctl, fd, FIONREAD, reinterpret_cast<long>(&size));
  return asked == 0 && size > 0 ? static_cast<std::size_t>(size) : 0;
}

// From 1.22 on it reads whole datagrams.
bool cuts_datagrams() {
  constexpr int first_that_reads_all = 0x011600;
  int version = 0;
  ares_version(&version);
  return version < first_that_reads_all;
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
  from(self)->large_.reset();
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
  if (s.at(place)->datagrams && cuts_datagrams()) {
    const std::size_t whole = next_datagram(fd);
    if (whole > usual_datagram && size >= usual_datagram)
      return s.receive_large(fd, whole, data, size, flags, from_address, length);
  }
  return real->recvfrom(fd, data, size, flags, from_address, length);
}

// c-ares is shown the beginning, by which it knows its query, as if that were all.
ares_ssize_t dns_sockets::receive_large(int fd, std::size_t whole, void* data, std::size_t size,
                                        int flags, sockaddr* from_address, ares_socklen_t* length) {
  large_.reset(new (std::nothrow) std::uint8_t[whole]);
  if (large_ == nullptr) return real->recvfrom(fd, data, size, flags, from_address, length);
  const ssize_t count = real->recvfrom(fd, large_.get(), whole, flags, from_address, length);
  if (count <= 0) return count;
  large_size_ = static_cast<std::size_t>(count);
  const std::size_t shown = std::min(usual_datagram, large_size_);
  std::memcpy(data, large_.get(), shown);
  return static_cast<ares_ssize_t>(shown);
}

std::span<const std::uint8_t> dns_sockets::whole_reply(std::span<const std::uint8_t> shown) const {
  const bool is_its_beginning = large_ != nullptr && large_size_ >= shown.size() &&
                                std::equal(shown.begin(), shown.end(), large_.get());
  return is_its_beginning ? std::span<const std::uint8_t>{large_.get(), large_size_} : shown;
}

// Only the first part: c-ares takes a short count, and with one query there is one part. Not
// writev(), which would raise SIGPIPE in the program's thread when a nameserver hangs up.
ares_ssize_t dns_sockets::send(ares_socket_t place, const iovec* parts, int count, void* self) {
  const int fd = from(self)->descriptor(place);
  if (fd < 0 || count < 1) return -1;
  ++from(self)->packets_sent_;
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
