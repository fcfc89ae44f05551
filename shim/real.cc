#include "shim/real.h"

#include <dlfcn.h>
#include <fcntl.h>

#include "shim/base/real_functions.h"
#include "shim/forced.h"

namespace happy {
namespace {

constinit happy_real table{};

// A sanitizer's own functions stand in the program, before us: they have to see our calls.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void* const where_unhooked = RTLD_DEFAULT;
#else
void* const where_unhooked = RTLD_NEXT;
#endif

template <typename Function>
bool find_next(Function& slot, const char* name) {
  if (slot == nullptr) slot = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  return slot != nullptr;
}

template <typename Function>
bool find(Function& slot, const char* name) {
  if (slot == nullptr) slot = reinterpret_cast<Function>(dlsym(where_unhooked, name));
  return slot != nullptr;
}

}  // namespace

bool find_hooked_functions() {
  const bool complete =
      find_next(table.getaddrinfo, "getaddrinfo") && find_next(table.connect, "connect");
  if (complete) real = &table;
  return complete;
}

bool find_all_functions(std::uint32_t force, int fail_call) {
  const bool complete =
      find(table.freeaddrinfo, "freeaddrinfo") && find(table.socket, "socket") &&
      find_next(table.bind, "bind") && find(table.shutdown, "shutdown") &&
      find_next(table.close, "close") && find_next(table.dup3, "dup3") &&
      find(table.fcntl, "fcntl") && find(table.getsockopt, "getsockopt") &&
      find(table.setsockopt, "setsockopt") && find(table.getsockname, "getsockname") &&
      find_next(table.epoll_ctl, "epoll_ctl") && find_next(table.poll, "poll") &&
      find(table.open, "open") && find(table.fstat, "fstat") && find(table.stat, "stat") &&
      find(table.read, "read") && find(table.recvfrom, "recvfrom") &&
      find(table.sigaction, "sigaction") && find(table.pthread_create, "pthread_create") &&
      find(table.clock_gettime, "clock_gettime");
  if (complete && force != 0) force_failures(table, force);
  if (complete) fail_one_call(table, fail_call);
  return complete;
}

}  // namespace happy
