// A process that listens or accepts compares the addresses of names with those of its peers (reverse
// lookups of daemons): from then on its lookups wait for both families, as libc's do.

#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "shim/base/raw_syscall.h"
#include "shim/late_function.h"
#include "shim/process.h"
#include "shim/serving.h"

namespace happy {
namespace {

constinit late_function<decltype(&::listen)> real_listen{"listen"};
constinit late_function<decltype(&::accept)> real_accept{"accept"};
constinit late_function<decltype(&::accept4)> real_accept4{"accept4"};

// Peers by AF_UNIX have no address: browsers, editors and players listen there for a second instance of themselves.
bool is_ip(int fd) {
  int domain = AF_UNSPEC;
  socklen_t length = sizeof domain;
  raw_syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, reinterpret_cast<long>(&domain),
              reinterpret_cast<long>(&length));
  return domain == AF_INET || domain == AF_INET6;
}

// Not in a sandbox: it has listed its calls.
bool may_ask() { return current_phase.load(std::memory_order_acquire) != phase::off; }

void listens(int fd) {
  if (fd >= 0 && !is_serving() && may_ask() && is_ip(fd)) note_serving();
}

// Each number is asked about once: what has come behind it since has been through listen(), or came with the process.
void accepts(int fd) {
  static constinit std::atomic<std::uint64_t> of_others{0};  // a bit for each of the first numbers
  if (fd < 0 || is_serving()) return;
  const std::uint64_t bit = fd < 64 ? std::uint64_t{1} << fd : 0;
  if ((of_others.load(std::memory_order_relaxed) & bit) != 0) return;
  listens(fd);
  if (!is_serving()) of_others.fetch_or(bit, std::memory_order_relaxed);
}

}  // namespace
}  // namespace happy

// What the processor expects of returns does not outlast a system call: the real function returns to the program.

extern "C" {

__attribute__((visibility("default"))) int listen(int fd, int backlog) {
  happy::listens(fd);
  return happy::real_listen.get()(fd, backlog);
}

__attribute__((visibility("default"))) int accept(int fd, sockaddr* from, socklen_t* length) {
  happy::accepts(fd);
  return happy::real_accept.get()(fd, from, length);
}

__attribute__((visibility("default"))) int accept4(int fd, sockaddr* from, socklen_t* length,
                                                   int flags) {
  happy::accepts(fd);
  return happy::real_accept4.get()(fd, from, length, flags);
}

}  // extern "C"
