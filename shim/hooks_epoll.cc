// The hook of epoll_ctl(): while a socket may be replaced, a change of a set waits until it is done.

#include <sys/epoll.h>

#include "shim/engine_visit.h"
#include "shim/late_function.h"
#include "shim/loader.h"
#include "shim/pending.h"

namespace happy {
namespace {

constinit late_function<decltype(&::epoll_ctl)> real_epoll_ctl{"epoll_ctl"};

}  // namespace

int change_epoll(int set, int operation, int fd, epoll_event* event) {
  const happy_engine* engine = epoll_watched() ? loaded_engine() : nullptr;
  if (engine == nullptr) return real_epoll_ctl.get()(set, operation, fd, event);
  engine_visit visit;
  return engine->change_epoll(set, operation, fd, event);
}

}  // namespace happy

extern "C" __attribute__((visibility("default"))) int epoll_ctl(int set, int operation, int fd,
                                                                epoll_event* event) noexcept {
  return happy::change_epoll(set, operation, fd, event);
}
