// getnameinfo() and gethostbyaddr(): libc's own lookups, which need not begin with a nameserver that is known to be
// silent.

#include <netdb.h>
#include <sys/socket.h>

#include "shim/late_function.h"
#include "shim/libc_queries.h"
#include "shim/silent_nameservers.h"

namespace happy {
namespace {

constinit late_function<decltype(&::getnameinfo)> real_getnameinfo{"getnameinfo"};
constinit late_function<decltype(&::gethostbyaddr)> real_gethostbyaddr{"gethostbyaddr"};
constinit late_function<decltype(&::gethostbyaddr_r)> real_gethostbyaddr_r{"gethostbyaddr_r"};

}  // namespace
}  // namespace happy

#define HAPPY_EXPORT extern "C" __attribute__((visibility("default")))

HAPPY_EXPORT int getnameinfo(const sockaddr* address, socklen_t length, char* host,
                             socklen_t host_size, char* service, socklen_t service_size,
                             int flags) {
  const auto ask = happy::real_getnameinfo.get();
  if ((flags & NI_NUMERICHOST) != 0 || host == nullptr || host_size == 0)
    return ask(address, length, host, host_size, service, service_size, flags);
  const happy::answering_first order;
  return ask(address, length, host, host_size, service, service_size, flags);
}

HAPPY_EXPORT hostent* gethostbyaddr(const void* address, socklen_t length, int type) {
  const happy::answering_first order;
  return happy::real_gethostbyaddr.get()(address, length, type);
}

HAPPY_EXPORT int gethostbyaddr_r(const void* address, socklen_t length, int type, hostent* host,
                                 char* buffer, size_t size, hostent** result, int* resolver_error) {
  const happy::answering_first order;
  return happy::real_gethostbyaddr_r.get()(address, length, type, host, buffer, size, result,
                                           resolver_error);
}
