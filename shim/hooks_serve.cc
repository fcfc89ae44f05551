// A process that listens or accepts compares the addresses of names with those of its peers (reverse
// lookups of daemons): from then on its lookups wait for both families, as libc's do.

#include <sys/socket.h>

#include <cerrno>

#include "shim/late_function.h"
#include "shim/serving.h"

namespace happy {
namespace {

constinit late_function<decltype(&::listen)> real_listen{"listen"};
constinit late_function<decltype(&::accept)> real_accept{"accept"};
constinit late_function<decltype(&::accept4)> real_accept4{"accept4"};

}  // namespace
}  // namespace happy

extern "C" {

__attribute__((visibility("default"))) int listen(int fd, int backlog) {
  happy::note_serving();
  return happy::real_listen.get()(fd, backlog);
}

__attribute__((visibility("default"))) int accept(int fd, sockaddr* from, socklen_t* length) {
  happy::note_serving();
  return happy::real_accept.get()(fd, from, length);
}

__attribute__((visibility("default"))) int accept4(int fd, sockaddr* from, socklen_t* length,
                                                   int flags) {
  happy::note_serving();
  return happy::real_accept4.get()(fd, from, length, flags);
}

}  // extern "C"
