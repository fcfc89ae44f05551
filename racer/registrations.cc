#include "racer/registrations.h"

#include <sys/epoll.h>

#include <cerrno>

#include "shim/base/real_functions.h"

namespace happy {

void register_again(const epoll_entry_list& entries) {
  for (const epoll_entry& e : entries) {
    epoll_event event{};
    event.events = e.events;
    event.data.u64 = e.data;
    real->epoll_ctl(e.set, EPOLL_CTL_ADD, e.fd, &event);
  }
}

bool unregister(epoll_entry_list& entries) {
  epoll_entry_list taken;
  for (const epoll_entry& e : entries) {
    if (real->epoll_ctl(e.set, EPOLL_CTL_DEL, e.fd, nullptr) == 0) {
      taken.push_back(e);
    } else if (errno != ENOENT && errno != EBADF) {
      register_again(taken);
      return false;
    }
  }
  entries = taken;
  return true;
}

}  // namespace happy
