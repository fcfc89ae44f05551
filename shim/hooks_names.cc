// The hooks of what tells a socket's addresses, family and IPv4 options: a translated socket
// (translated.h) goes on being what the program made, even when libhappy does nothing else any more. For
// all others they are one branch.

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "shim/abi.h"
#include "shim/base/endpoint.h"
#include "shim/base/guards.h"
#include "shim/base/ip_options.h"
#include "shim/late_function.h"
#include "shim/pending.h"
#include "shim/tied_socket.h"
#include "shim/translated.h"

namespace happy {
namespace {

using name_function = int (*)(int, sockaddr*, socklen_t*);

constinit late_function<name_function> real_getpeername{"getpeername"};
constinit late_function<name_function> real_getsockname{"getsockname"};
constinit late_function<int (*)(int, int, int, void*, socklen_t*)> real_getsockopt{"getsockopt"};
constinit late_function<int (*)(int, int, int, const void*, socklen_t)> real_setsockopt{
    "setsockopt"};

bool is_unspecified(const address& a) { return a.bytes == address{}.bytes; }

// The program's view of `shown`, the kernel's; `as` is what a global IPv6 address stands for. False: they are the same.
bool translate(const endpoint& shown, const address& as, const translated_socket& s,
               socket_address& out) {
  if (shown.address.family != family::ipv6) return false;
  const bool mapped_view = (s.flags & HAPPY_TRANSLATED_MAPPED) != 0;
  const bool native = is_v4_mapped(shown.address);
  const bool unspecified = is_unspecified(shown.address);
  if (mapped_view && (native || unspecified)) return false;
  const address view = native ? unmapped(shown.address) : unspecified ? address{} : as;
  out = to_sockaddr({mapped_view ? mapped(view) : view, shown.port});
  return true;
}

// As the kernel gives a name: what fits, and its true length.
void give(const socket_address& name, sockaddr* to, socklen_t room, socklen_t* length) {
  std::memcpy(to, name.get(), std::min(room, name.length));
  *length = name.length;
}

address peer_of(const translated_socket& s) {
  address a;
  std::memcpy(a.bytes.data(), &s.ipv4, sizeof s.ipv4);
  return a;
}

// The real function has judged the program's pointers; it is asked again for the whole name.
int name_of(int fd, sockaddr* to, socklen_t* length, name_function ask, bool peer) {
  const socklen_t room = length != nullptr && any_translated() ? *length : 0;
  const int result = ask(fd, to, length);
  translated_socket s;
  if (result != 0 || !is_translated(fd, s)) return result;
  errno_saver keep;
  socket_address whole;
  whole.length = sizeof whole.storage;
  endpoint shown;
  socket_address view;
  if (ask(fd, whole.get(), &whole.length) == 0 && from_sockaddr(whole.get(), whole.length, shown) &&
      translate(shown, peer ? peer_of(s) : own_ipv4, s, view)) {
    give(view, to, room, length);
  }
  return result;
}

bool believes_in_ipv4(int fd) {
  translated_socket s;
  return is_translated(fd, s) && (s.flags & HAPPY_TRANSLATED_MAPPED) == 0;
}

// IP_TOS and its kin may be given as one byte.
[[gnu::noinline]] void repeat_for_ipv6(int fd, int name, const void* value, socklen_t length) {
  const int option = ipv6_option(name);
  if (option == 0) return;
  errno_saver keep;
  int number = 0;
  if (length >= sizeof number) {
    std::memcpy(&number, value, sizeof number);
  } else if (length >= 1) {
    number = *static_cast<const unsigned char*>(value);
  }
  real_setsockopt.get()(fd, IPPROTO_IPV6, option, &number, sizeof number);
}

// What a translator takes off an IPv6 packet when it makes an IPv4 one of it: RFC 7915 s1.4.
constexpr int header_difference = 20;

bool goes_by_ipv6(int fd) {
  socket_address peer;
  peer.length = sizeof peer.storage;
  endpoint where;
  return real_getpeername.get()(fd, peer.get(), &peer.length) == 0 &&
         from_sockaddr(peer.get(), peer.length, where) && where.address.family == family::ipv6 &&
         !is_v4_mapped(where.address);
}

bool is_amended(int level, int name) {
  return (level == SOL_SOCKET && name == SO_DOMAIN) || (level == IPPROTO_IP && name == IP_MTU);
}

// What the kernel has answered for a socket that the program takes for an IPv4 one.
[[gnu::noinline]] void amend_option(int fd, int level, int name, void* value, socklen_t* length) {
  errno_saver keep;
  int number = 0;
  if (name == SO_DOMAIN && level == SOL_SOCKET) {
    number = AF_INET;
  } else {
    if (*length != sizeof number || !goes_by_ipv6(fd)) return;
    std::memcpy(&number, value, sizeof number);
    number -= header_difference;
  }
  std::memcpy(value, &number, std::min<socklen_t>(*length, sizeof number));
}

}  // namespace
}  // namespace happy

extern "C" {

__attribute__((visibility("default"))) int getpeername(int fd, sockaddr* to,
                                                       socklen_t* length) noexcept {
  using namespace happy;
  const name_function ask = real_getpeername.get();
  return any_translated() ? name_of(fd, to, length, ask, true) : ask(fd, to, length);
}

__attribute__((visibility("default"))) int getsockname(int fd, sockaddr* to,
                                                       socklen_t* length) noexcept {
  using namespace happy;
  const name_function ask = real_getsockname.get();
  return any_translated() ? name_of(fd, to, length, ask, false) : ask(fd, to, length);
}

__attribute__((visibility("default"))) int getsockopt(int fd, int level, int name, void* value,
                                                      socklen_t* length) noexcept {
  using namespace happy;
  const int result = real_getsockopt.get()(fd, level, name, value, length);
  if (any_translated() && result == 0 && is_amended(level, name) && believes_in_ipv4(fd))
    amend_option(fd, level, name, value, length);
  return result;
}

__attribute__((visibility("default"))) int setsockopt(int fd, int level, int name,
                                                      const void* value,
                                                      socklen_t length) noexcept {
  using namespace happy;
  if (level == IPPROTO_IP && is_datagram_option(name))
    __atomic_store_n(&pending_counts.datagram_options, 1, __ATOMIC_RELAXED);
  note_tie(level, name);
  note_option_change();
  const int result = real_setsockopt.get()(fd, level, name, value, length);
  note_option_change();
  if (any_translated() && result == 0 && level == IPPROTO_IP && believes_in_ipv4(fd))
    repeat_for_ipv6(fd, name, value, length);
  return result;
}

}  // extern "C"
