#include "shim/tied_socket.h"

#include <net/if.h>
#include <netinet/in.h>

#include "shim/base/endpoint.h"
#include "shim/base/guards.h"
#include "shim/base/raw_syscall.h"
#include "shim/process.h"
#include "shim/readable.h"

namespace happy {
namespace {

struct tie {
  char device[IFNAMSIZ]{};
  socklen_t length = 0;
  int index = 0;  // IP_UNICAST_IF, in network order
};

// By system calls: the table of real functions is whole only where the engine is loaded.
long as_number(const void* pointer) { return reinterpret_cast<long>(pointer); }

bool get_option(int fd, int level, int name, void* value, socklen_t& length) {
  return raw_syscall(SYS_getsockopt, fd, level, name, as_number(value), as_number(&length)) == 0;
}

bool set_option(int fd, int level, int name, const void* value, socklen_t length) {
  return raw_syscall(SYS_setsockopt, fd, level, name, as_number(value),
                     static_cast<long>(length)) == 0;
}

tie read_tie(int fd) {
  tie found;
  found.length = sizeof found.device;
  if (!get_option(fd, SOL_SOCKET, SO_BINDTODEVICE, found.device, found.length)) found.length = 0;
  socklen_t length = sizeof found.index;
  if (!get_option(fd, IPPROTO_IP, IP_UNICAST_IF, &found.index, length)) found.index = 0;
  return found;
}

bool tie_like(int fd, const tie& wanted) {
  return (wanted.length == 0 ||
          set_option(fd, SOL_SOCKET, SO_BINDTODEVICE, wanted.device, wanted.length)) &&
         (wanted.index == 0 ||
          set_option(fd, IPPROTO_IP, IP_UNICAST_IF, &wanted.index, sizeof wanted.index));
}

// Connecting a UDP socket sends nothing and picks its source. Where nothing can be found out there is one.
bool has_source(int probe, const tie& wanted, const endpoint& to) {
  if (probe < 0 || !tie_like(probe, wanted)) return true;
  const socket_address there = to_sockaddr(to);
  if (raw_syscall(SYS_connect, probe, as_number(there.get()), static_cast<long>(there.length)) != 0)
    return true;  // connect() will say so
  socket_address own;
  own.length = sizeof own.storage;
  endpoint from;
  if (raw_syscall(SYS_getsockname, probe, as_number(own.get()), as_number(&own.length)) != 0 ||
      !from_sockaddr(own.get(), own.length, from)) {
    return true;
  }
  return from.address.bytes != address{}.bytes;
}

bool has_source(const tie& wanted, const endpoint& to) {
  const auto probe =
      static_cast<int>(raw_syscall(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const bool has = has_source(probe, wanted, to);
  if (probe >= 0) raw_syscall(SYS_close, probe);
  return has;
}

}  // namespace

void note_tie(int level, int option) {
  constexpr int so_bindtoifindex = 62;
  const bool ties = level == SOL_SOCKET ? option == SO_BINDTODEVICE || option == so_bindtoifindex
                                        : level == IPPROTO_IP && option == IP_UNICAST_IF;
  if (!ties) return;
  any_tied_socket.store(true, std::memory_order_relaxed);
  watch_connects();
}

bool is_tied_without_ipv4(int fd, const sockaddr* to, socklen_t length) {
  if (!any_tied_socket.load(std::memory_order_relaxed)) return false;
  errno_saver keep;
  endpoint where;
  if (length > sizeof(sockaddr_storage) || !is_readable(to, length) ||
      !from_sockaddr(to, length, where))
    return false;
  where.address = unmapped(where.address);
  if (where.address.family != family::ipv4) return false;
  const tie found = read_tie(fd);
  return (found.length > 0 || found.index != 0) && !has_source(found, where);
}

}  // namespace happy
