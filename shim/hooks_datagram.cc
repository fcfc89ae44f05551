// The hooks of what sends and receives datagrams, for HAPPY_UDP=1 on a network that has only IPv6: a datagram to an
// IPv4 address to which the kernel has no route goes by way of the NAT64, and one that comes back shows the IPv4
// address that it came from. Addresses alone are touched. Everywhere else a hook is a load and a branch.

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "shim/abi.h"
#include "shim/base/endpoint.h"
#include "shim/base/guards.h"
#include "shim/engine_visit.h"
#include "shim/late_function.h"
#include "shim/loader.h"
#include "shim/process.h"
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

bool udp_wanted() { return settings_read.settings.udp != 0; }

// ---- sending ----

// The destination for a datagram that the kernel has refused with errno; false: its answer holds.
bool find_destination(int fd, const sockaddr* to, socklen_t length, sockaddr_in6& found) {
  const int error = errno;
  if (to == nullptr || !hooks_live() || !may_be_synthesised(error, fd, to, length)) return false;
  happy_synthesis call{};
  const bool leads = find_way_by_ipv6(fd, to, length, call);
  errno = error;
  if (leads) found = call.destination;
  return leads;
}

ssize_t send_one(int fd, const msghdr* message, int flags) {
  const ssize_t sent = real_sendmsg.get()(fd, message, flags);
  sockaddr_in6 found;
  if (sent >= 0 || errno != ENETUNREACH) return sent;
  if (!find_destination(fd, static_cast<const sockaddr*>(message->msg_name), message->msg_namelen,
                        found)) {
    return sent;
  }
  msghdr again = *message;
  again.msg_name = &found;
  again.msg_namelen = sizeof found;
  return real_sendmsg.get()(fd, &again, flags);
}

// ---- receiving ----

bool is_translated_datagram(int fd) {
  translated_socket s;
  return is_translated(fd, s) && (s.flags & HAPPY_TRANSLATED_DATAGRAM) != 0 &&
         (s.flags & HAPPY_TRANSLATED_MAPPED) == 0;
}

// What the program calls the source of a datagram; 0.0.0.0 if it is no IPv4 address in any way.
socket_address source_of(const sockaddr_storage& shown, socklen_t length) {
  endpoint from;
  if (!from_sockaddr(reinterpret_cast<const sockaddr*>(&shown), length, from)) return {};
  address view = unmapped(from.address);
  if (view.family == family::ipv6) {
    const in6_addr a = reinterpret_cast<const sockaddr_in6*>(&shown)->sin6_addr;
    std::uint32_t ipv4 = 0;
    if (const happy_engine* engine = loaded_engine()) {
      engine_visit visit;
      engine->ipv4_behind(&a, &ipv4);
    }
    view = address{};
    std::memcpy(view.bytes.data(), &ipv4, sizeof ipv4);
  }
  return to_sockaddr({view, from.port});
}

// As the kernel gives a name: what fits, and its true length.
void give_source(const sockaddr_storage& shown, socklen_t shown_length, void* to, socklen_t room,
                 socklen_t& length) {
  if (shown_length == 0) {  // a connected socket's error queue, for one
    length = 0;
    return;
  }
  errno_saver keep;
  const socket_address view = source_of(shown, shown_length);
  std::memcpy(to, view.get(), std::min(room, view.length));
  length = view.length;
}

// `receive` is the real function, given where to put the name.
template <typename Receive>
ssize_t receive_from(int fd, sockaddr* from, socklen_t* length, Receive&& receive) {
  if (from == nullptr || length == nullptr || !is_translated_datagram(fd))
    return receive(from, length);
  sockaddr_storage shown;
  socklen_t shown_length = sizeof shown;
  const ssize_t size = receive(reinterpret_cast<sockaddr*>(&shown), &shown_length);
  if (size >= 0) give_source(shown, shown_length, from, *length, *length);
  return size;
}

// Datagrams whose names are translated in one call; a program that asks for more gets the rest with its next.
constexpr unsigned most_messages = 64;

struct wanted_name {
  void* to;
  socklen_t room;
  sockaddr_storage shown;
};

void redirect(msghdr& message, wanted_name& name) {
  name.to = message.msg_name;
  name.room = message.msg_namelen;
  if (name.to == nullptr) return;
  message.msg_name = &name.shown;
  message.msg_namelen = sizeof name.shown;
}

void restore(msghdr& message, wanted_name& name, bool arrived) {
  if (name.to == nullptr) return;
  const socklen_t shown_length = message.msg_namelen;
  message.msg_name = name.to;
  message.msg_namelen = name.room;
  if (arrived) give_source(name.shown, shown_length, name.to, name.room, message.msg_namelen);
}

int receive_many(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  wanted_name names[most_messages];
  count = std::min(count, most_messages);
  for (unsigned i = 0; i < count; ++i) redirect(messages[i].msg_hdr, names[i]);
  const int arrived = real_recvmmsg.get()(fd, messages, count, flags, timeout);
  for (unsigned i = 0; i < count; ++i)
    restore(messages[i].msg_hdr, names[i], static_cast<int>(i) < arrived);
  return arrived;
}

}  // namespace
}  // namespace happy

extern "C" {

__attribute__((visibility("default"))) ssize_t sendto(int fd, const void* data, size_t size,
                                                      int flags, const sockaddr* to,
                                                      socklen_t length) {
  using namespace happy;
  const auto send = real_sendto.get();
  if (!udp_wanted()) return send(fd, data, size, flags, to, length);
  const ssize_t sent = send(fd, data, size, flags, to, length);
  sockaddr_in6 found;
  if (sent >= 0 || errno != ENETUNREACH || !find_destination(fd, to, length, found)) return sent;
  return send(fd, data, size, flags, reinterpret_cast<const sockaddr*>(&found), sizeof found);
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  using namespace happy;
  return udp_wanted() ? send_one(fd, message, flags) : real_sendmsg.get()(fd, message, flags);
}

__attribute__((visibility("default"))) int sendmmsg(int fd, mmsghdr* messages, unsigned count,
                                                    int flags) {
  using namespace happy;
  const int sent = real_sendmmsg.get()(fd, messages, count, flags);
  if (!udp_wanted() || sent >= 0 || errno != ENETUNREACH) return sent;
  unsigned done = 0;
  for (; done < count; ++done) {
    const ssize_t size = send_one(fd, &messages[done].msg_hdr, flags);
    if (size < 0) break;
    messages[done].msg_len = static_cast<unsigned>(size);
  }
  return done > 0 ? static_cast<int>(done) : -1;
}

__attribute__((visibility("default"))) ssize_t recvfrom(int fd, void* data, size_t size, int flags,
                                                        sockaddr* from, socklen_t* length) {
  using namespace happy;
  const auto receive = real_recvfrom.get();
  if (!any_translated_datagrams()) return receive(fd, data, size, flags, from, length);
  return receive_from(fd, from, length, [&](sockaddr* name, socklen_t* room) {
    return receive(fd, data, size, flags, name, room);
  });
}

__attribute__((visibility("default"))) ssize_t __recvfrom_chk(int fd, void* data, size_t size,
                                                              size_t data_size, int flags,
                                                              sockaddr* from, socklen_t* length) {
  using namespace happy;
  const auto receive = real_recvfrom_chk.get();
  if (!any_translated_datagrams()) return receive(fd, data, size, data_size, flags, from, length);
  return receive_from(fd, from, length, [&](sockaddr* name, socklen_t* room) {
    return receive(fd, data, size, data_size, flags, name, room);
  });
}

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, msghdr* message, int flags) {
  using namespace happy;
  const auto receive = real_recvmsg.get();
  if (!any_translated_datagrams() || message == nullptr || !is_translated_datagram(fd))
    return receive(fd, message, flags);
  wanted_name name;
  redirect(*message, name);
  const ssize_t size = receive(fd, message, flags);
  restore(*message, name, size >= 0);
  return size;
}

__attribute__((visibility("default"))) int recvmmsg(int fd, mmsghdr* messages, unsigned count,
                                                    int flags, timespec* timeout) {
  using namespace happy;
  if (!any_translated_datagrams() || messages == nullptr || !is_translated_datagram(fd))
    return real_recvmmsg.get()(fd, messages, count, flags, timeout);
  return receive_many(fd, messages, count, flags, timeout);
}

}  // extern "C"
