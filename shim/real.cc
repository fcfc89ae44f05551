#include "shim/real.h"

#include <dlfcn.h>
#include <fcntl.h>

#include "shim/base/real_functions.h"
#include "shim/forced.h"
#include "shim/late_libc.h"
#include "shim/next_function.h"
#include "shim/process.h"

namespace happy {
namespace {

constinit happy_real table{};
constinit bool foreign_names = false;

// A sanitizer's own functions stand in the program, before us: they have to see our calls.
void* find_unhooked(const char* name) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(HAPPY_BELOW_SANITIZER)
  return dlsym(RTLD_DEFAULT, name);
#else
  return find_next_function(name);
#endif
}

template <typename Function>
bool find_next(Function& slot, const char* name) {
  if (slot == nullptr) slot = reinterpret_cast<Function>(find_next_function(name));
  return slot != nullptr;
}

template <typename Function>
bool find(Function& slot, const char* name) {
  if (slot == nullptr) slot = reinterpret_cast<Function>(find_unhooked(name));
  return slot != nullptr;
}

bool find_late_libc() {
  return find(libc.dlopen, "dlopen") && find(libc.dlinfo, "dlinfo") &&
         find(libc.pthread_attr_init, "pthread_attr_init") &&
         find(libc.pthread_attr_setdetachstate, "pthread_attr_setdetachstate") &&
         find(libc.pthread_attr_setstacksize, "pthread_attr_setstacksize") &&
         find(libc.pthread_setcancelstate, "pthread_setcancelstate") &&
         find(libc.pthread_setcanceltype, "pthread_setcanceltype") &&
         find(libc.cleanup_push, "_pthread_cleanup_push") &&
         find(libc.cleanup_pop, "_pthread_cleanup_pop") &&
         find(libc.h_errno_location, "__h_errno_location") &&
         find(libc.single_threaded, "__libc_single_threaded");
}

}  // namespace

bool names_are_others() { return foreign_names; }

bool find_connect() {
  if (!find_next(table.connect, "connect")) return false;
  real = &table;
  return true;
}

bool find_all_functions() {
  const bool complete =
      find_late_libc() && find_next(table.getaddrinfo, "getaddrinfo") &&
      find(table.freeaddrinfo, "freeaddrinfo") && find(table.socket, "socket") &&
      find_next(table.bind, "bind") && find(table.shutdown, "shutdown") &&
      find_next(table.close, "close") && find_next(table.dup3, "dup3") &&
      find(table.fcntl, "fcntl") && find_next(table.getsockopt, "getsockopt") &&
      find_next(table.setsockopt, "setsockopt") && find_next(table.getsockname, "getsockname") &&
      find_next(table.epoll_ctl, "epoll_ctl") && find_next(table.poll, "poll") &&
      find(table.open, "open") && find(table.fstat, "fstat") && find(table.stat, "stat") &&
      find(table.read, "read") && find(table.recvfrom, "recvfrom") &&
      find(table.sigaction, "sigaction") && find(table.pthread_create, "pthread_create") &&
      find(table.clock_gettime, "clock_gettime");
  if (!complete) return false;
  foreign_names = !is_libcs("getaddrinfo");
  const happy_settings& settings = process_environment().settings;
  if (settings.force != 0) force_failures(table, settings.force);
  fail_one_call(table, settings.fail_call);
  return true;
}

}  // namespace happy
