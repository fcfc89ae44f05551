// The hooks of what sends and receives datagrams, for HAPPY_UDP=1 on a network that has only IPv6: a datagram to an
// IPv4 address to which the kernel has no route goes by way of the NAT64, and one that comes back shows the IPv4
// address that it came from. Addresses alone are touched. Everywhere else a hook is a load and a branch, or two.

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "shim/abi.h"
#include "shim/base/endpoint.h"
#include "shim/base/guards.h"
#include "shim/control_messages.h"
#include "shim/engine_visit.h"
#include "shim/fast_open.h"
#include "shim/late_function.h"
#include "shim/loader.h"
#include "shim/pending.h"
#include "shim/process.h"
#include "shim/readable.h"
#include "shim/tied_socket.h"
#include "shim/translated.h"

namespace happy {
namespace {

constinit late_function<ssize_t (*)(int, const void*, size_t, int, const sockaddr*, socklen_t)>
    real_sendto{"sendto"};
constinit late_function<ssize_t (*)(int, const msghdr*, int)> real_sendmsg{"sendmsg"};
constinit late_function<int (*)(int, mmsghdr*, unsigned, int)> real_sendmmsg{"sendmmsg"};
constinit late_function<ssize_t (*)(int, void*, size_t, int, sockaddr*, socklen_t*)> real_recvfrom{
    "recvfrom"};
constinit late_function<ssize_t (*)(int, void*, size_t, size_t, int, sockaddr*, socklen_t*)>
    real_recvfrom_chk{"__recvfrom_chk"};
constinit late_function<ssize_t (*)(int, msghdr*, int)> real_recvmsg{"recvmsg"};
constinit late_function<int (*)(int, mmsghdr*, unsigned, int, timespec*)> real_recvmmsg{"recvmmsg"};

void note_sending(const mmsghdr* messages, unsigned count) {
  if (!races_pending()) return;
  for (unsigned i = 0; i < count && is_readable(&messages[i], sizeof *messages); ++i)
    happy::note_sending(&messages[i].msg_hdr);
}

// Data that goes with the SYN (MSG_FASTOPEN) is a connect().
bool is_wanted(int flags) { return settings_read.settings.udp != 0 || (flags & MSG_FASTOPEN) != 0; }
bool is_looked_at(int flags) { return is_wanted(flags) || any_bridged(); }

// ---- sending ----

// Where the kernel did not send a datagram, for lack of a route or because it shall carry an address of ours.
bool was_refused() {
  return errno == ENETUNREACH || (errno == EINVAL && any_translated_datagrams());
}

// The destination for a datagram that the kernel has refused with errno; false: its answer holds.
bool find_destination(int fd, const sockaddr* to, socklen_t length, int flags,
                      sockaddr_in6& found) {
  const int error = errno;
  if (to == nullptr || !hooks_live() || !may_be_synthesised(error, fd, to, length)) return false;
  happy_synthesis call{};
  call.connects = (flags & MSG_FASTOPEN) != 0 ? 1 : 0;
  const bool leads = find_way_by_ipv6(fd, to, length, call);
  errno = error;
  if (leads) found = call.destination;
  return leads;
}

// Whether the kernel would look for a neighbour (tied_socket.h).
bool would_get_lost(int fd, const sockaddr* to, socklen_t length, int flags) {
  if (!is_wanted(flags) || !hooks_live() || !is_tied_without_ipv4(fd, to, length)) return false;
  return (flags & MSG_FASTOPEN) != 0 || is_datagram(fd);
}

template <typename Send>
ssize_t send_fast(int fd, const sockaddr* to, socklen_t length, Send& send) {
  struct sender {
    Send& send;
    const sockaddr* named;
  } how{send, to};
  const auto call = [](void* with, const sockaddr* where, socklen_t size) {
    const auto& s = *static_cast<sender*>(with);
    return s.send(where, size, where != s.named);
  };
  return open_fast(fd, to, length, {call, &how});
}

// Sends one datagram; `send(to, length, as_ipv6)` is the real function.
template <typename Send>
ssize_t send_to(int fd, const sockaddr* to, socklen_t length, int flags, Send&& send) {
  sockaddr_in6 found;
  const bool lost = would_get_lost(fd, to, length, flags);
  if (lost || leads_to_pool(fd, to, length, flags)) {
    errno = ENETUNREACH;
  } else {
    const ssize_t sent =
        (flags & MSG_FASTOPEN) != 0 ? send_fast(fd, to, length, send) : send(to, length, false);
    if (sent >= 0 || !was_refused()) return sent;
  }
  if (is_wanted(flags) && find_destination(fd, to, length, flags, found))
    return send(reinterpret_cast<const sockaddr*>(&found), sizeof found, true);
  return lost ? send(to, length, false) : -1;
}

// Not inlined: sendto() itself needs no stack then.
[[gnu::noinline]] ssize_t send_data_to(int fd, const void* data, size_t size, int flags,
                                       const sockaddr* to, socklen_t length) {
  return send_to(fd, to, length, flags, [&](const sockaddr* where, socklen_t size_of_it, bool) {
    return real_sendto.get()(fd, data, size, flags, where, size_of_it);
  });
}

ssize_t send_by_ipv6(int fd, msghdr message, int flags) {
  alignas(cmsghdr) char control[most_control];
  if (message.msg_control != nullptr) {
    message.msg_controllen = control_for_ipv6(message, control, sizeof control);
    message.msg_control = control;
  }
  return real_sendmsg.get()(fd, &message, flags);
}

ssize_t send_one(int fd, const msghdr* message, int flags) {
  if (!is_readable(message, sizeof *message)) return real_sendmsg.get()(fd, message, flags);
  return send_to(fd, static_cast<const sockaddr*>(message->msg_name), message->msg_namelen, flags,
                 [&](const sockaddr* to, socklen_t length, bool as_ipv6) {
                   if (!as_ipv6) return real_sendmsg.get()(fd, message, flags);
                   msghdr again = *message;
                   again.msg_name = const_cast<sockaddr*>(to);
                   again.msg_namelen = length;
                   return send_by_ipv6(fd, again, flags);
                 });
}

// ---- receiving ----

bool is_mapped(const translated_socket& s) { return (s.flags & HAPPY_TRANSLATED_MAPPED) != 0; }

// Whether what is received tells addresses that the program is not to see. Datagrams do, and the errors of any socket.
bool tells_addresses(int fd, int flags, translated_socket& s) {
  const bool errors = (flags & MSG_ERRQUEUE) != 0;
  if (!any_translated_datagrams() && !(errors && any_translated())) return false;
  if (!is_translated(fd, s)) return false;
  return (s.flags & HAPPY_TRANSLATED_DATAGRAM) != 0 || (errors && !is_mapped(s));
}

// The IPv4 address that `shown` stands for; false if it is none in any way.
bool find_ipv4(const address& shown, address& ipv4) {
  ipv4 = unmapped(shown);
  if (ipv4.family == family::ipv4) return true;
  in6_addr inside;
  std::memcpy(&inside, shown.bytes.data(), sizeof inside);
  std::uint32_t number = 0;
  const happy_engine* engine = loaded_engine();
  if (engine == nullptr) return false;
  engine_visit visit;
  if (engine->ipv4_behind(&inside, &number) == 0) return false;
  ipv4 = address{};
  std::memcpy(ipv4.bytes.data(), &number, sizeof number);
  return true;
}

// What the program calls it; 0.0.0.0 where it has no name for it.
address ipv4_view(const address& shown) {
  address ipv4;
  return find_ipv4(shown, ipv4) ? ipv4 : address{};
}

socket_address view_of(const sockaddr_storage& shown, socklen_t length,
                       const translated_socket& s) {
  endpoint from;
  if (!from_sockaddr(reinterpret_cast<const sockaddr*>(&shown), length, from)) return {};
  if (!is_mapped(s)) return to_sockaddr({ipv4_view(from.address), from.port});
  address ipv4;
  return to_sockaddr({find_ipv4(from.address, ipv4) ? mapped(ipv4) : from.address, from.port});
}

// As the kernel gives a name: what fits, and its true length.
void give_source(const sockaddr_storage& shown, socklen_t shown_length, const translated_socket& s,
                 void* to, socklen_t room, socklen_t& length) {
  if (shown_length == 0) {  // a connected socket's error queue, for one
    length = 0;
    return;
  }
  errno_saver keep;
  const socket_address view = view_of(shown, shown_length, s);
  std::memcpy(to, view.get(), std::min(room, view.length));
  length = view.length;
}

// `receive` is the real function, given where to put the name.
template <typename Receive>
ssize_t receive_from(int fd, int flags, sockaddr* from, socklen_t* length, Receive&& receive) {
  translated_socket s;
  if (from == nullptr || length == nullptr || !tells_addresses(fd, flags, s))
    return receive(from, length);
  sockaddr_storage shown;
  socklen_t shown_length = sizeof shown;
  const ssize_t size = receive(reinterpret_cast<sockaddr*>(&shown), &shown_length);
  if (size >= 0) give_source(shown, shown_length, s, from, *length, *length);
  return size;
}

// A message for the kernel to fill, in the place of the program's.
class stand_in {
 public:
  const msghdr& begin(const msghdr& wanted) {
    own_ = wanted;
    if (wanted.msg_name != nullptr) {
      own_.msg_name = &shown_;
      own_.msg_namelen = sizeof shown_;
    }
    if (wanted.msg_control != nullptr && wanted.msg_controllen != 0) {
      own_.msg_control = control_;
      own_.msg_controllen = sizeof control_;
    }
    return own_;
  }

  // `filled`: what the kernel has made of it.
  void give(const msghdr& filled, const translated_socket& s, msghdr& to) {
    if (to.msg_name != nullptr) {
      const socklen_t room = to.msg_namelen;
      give_source(shown_, filled.msg_namelen, s, to.msg_name, room, to.msg_namelen);
    }
    errno_saver keep;
    const auto as_it_is = [](const address& shown) { return shown; };
    give_control(filled, to, is_mapped(s) ? nullptr : &own_ipv4,
                 is_mapped(s) ? as_it_is : ipv4_view);
  }

 private:
  msghdr own_;
  sockaddr_storage shown_;
  alignas(cmsghdr) char control_[most_control];
};

[[gnu::noinline]] ssize_t receive_translated(int fd, const translated_socket& s, msghdr& message,
                                             int flags) {
  stand_in own;
  msghdr filled = own.begin(message);
  const ssize_t size = real_recvmsg.get()(fd, &filled, flags);
  if (size >= 0) own.give(filled, s, message);
  return size;
}

// Datagrams whose names are translated in one call; a program that asks for more gets the rest with its next.
constexpr unsigned most_messages = 16;  // 9 KiB

[[gnu::noinline]] int receive_many_translated(int fd, const translated_socket& s, mmsghdr* messages,
                                              unsigned count, int flags, timespec* timeout) {
  stand_in each[most_messages];
  mmsghdr filled[most_messages];
  count = std::min(count, most_messages);
  for (unsigned i = 0; i < count; ++i) filled[i] = {each[i].begin(messages[i].msg_hdr), 0};
  const int arrived = real_recvmmsg.get()(fd, filled, count, flags, timeout);
  for (int i = 0; i < arrived; ++i) {
    each[i].give(filled[i].msg_hdr, s, messages[i].msg_hdr);
    messages[i].msg_len = filled[i].msg_len;
  }
  return arrived;
}

// In a program that has translated sockets.
[[gnu::noinline]] ssize_t receive_one(int fd, msghdr& message, int flags) {
  translated_socket s;
  return tells_addresses(fd, flags, s) ? receive_translated(fd, s, message, flags)
                                       : real_recvmsg.get()(fd, &message, flags);
}

[[gnu::noinline]] int receive_many(int fd, mmsghdr* messages, unsigned count, int flags,
                                   timespec* timeout) {
  translated_socket s;
  return tells_addresses(fd, flags, s)
             ? receive_many_translated(fd, s, messages, count, flags, timeout)
             : real_recvmmsg.get()(fd, messages, count, flags, timeout);
}

}  // namespace
}  // namespace happy

extern "C" {

__attribute__((visibility("default"))) ssize_t sendto(int fd, const void* data, size_t size,
                                                      int flags, const sockaddr* to,
                                                      socklen_t length) {
  using namespace happy;
  if (to == nullptr || !is_looked_at(flags))
    return real_sendto.get()(fd, data, size, flags, to, length);
  return send_data_to(fd, data, size, flags, to, length);
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  using namespace happy;
  note_sending(message);
  if (message == nullptr || !is_looked_at(flags)) return real_sendmsg.get()(fd, message, flags);
  return send_one(fd, message, flags);
}

__attribute__((visibility("default"))) int sendmmsg(int fd, mmsghdr* messages, unsigned count,
                                                    int flags) {
  using namespace happy;
  note_sending(messages, count);
  const auto send_many = real_sendmmsg.get();
  if (messages == nullptr || !is_looked_at(flags)) return send_many(fd, messages, count, flags);
  if (!any_bridged() && !any_tied_socket.load(std::memory_order_relaxed)) {
    const int sent = send_many(fd, messages, count, flags);
    if (sent >= 0 || !was_refused()) return sent;
  }
  unsigned done = 0;
  for (; done < count; ++done) {
    const ssize_t size = send_one(fd, &messages[done].msg_hdr, flags);
    if (size < 0) break;
    messages[done].msg_len = static_cast<unsigned>(size);
  }
  return done > 0 || count == 0 ? static_cast<int>(done) : -1;
}

__attribute__((visibility("default"))) ssize_t recvfrom(int fd, void* data, size_t size, int flags,
                                                        sockaddr* from, socklen_t* length) {
  using namespace happy;
  const auto receive = real_recvfrom.get();
  if (!any_translated()) return receive(fd, data, size, flags, from, length);
  return receive_from(fd, flags, from, length, [&](sockaddr* name, socklen_t* room) {
    return receive(fd, data, size, flags, name, room);
  });
}

__attribute__((visibility("default"))) ssize_t __recvfrom_chk(int fd, void* data, size_t size,
                                                              size_t data_size, int flags,
                                                              sockaddr* from, socklen_t* length) {
  using namespace happy;
  const auto receive = real_recvfrom_chk.get();
  if (!any_translated()) return receive(fd, data, size, data_size, flags, from, length);
  return receive_from(fd, flags, from, length, [&](sockaddr* name, socklen_t* room) {
    return receive(fd, data, size, data_size, flags, name, room);
  });
}

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, msghdr* message, int flags) {
  using namespace happy;
  if (!any_translated() || message == nullptr) return real_recvmsg.get()(fd, message, flags);
  return receive_one(fd, *message, flags);
}

__attribute__((visibility("default"))) int recvmmsg(int fd, mmsghdr* messages, unsigned count,
                                                    int flags, timespec* timeout) {
  using namespace happy;
  if (!any_translated() || messages == nullptr)
    return real_recvmmsg.get()(fd, messages, count, flags, timeout);
  return receive_many(fd, messages, count, flags, timeout);
}

}  // extern "C"
