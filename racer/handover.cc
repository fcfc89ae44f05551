#include "racer/handover.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include "racer/open_files.h"
#include "shim/base/real_functions.h"

namespace happy {
namespace {

int close_on_exec_of(int fd) {
  const int flags = real->fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0;
}

// A registration follows the file, not the number: it has to be taken away while the number still shows
// the old file. Left in place it would go on firing as long as anything holds that file, and could not be
// removed any more.
void unregister(const epoll_entry_list& entries) {
  for (const epoll_entry& e : entries) real->epoll_ctl(e.set, EPOLL_CTL_DEL, e.fd, nullptr);
}

void register_again(const epoll_entry_list& entries) {
  for (const epoll_entry& e : entries) {
    epoll_event event{};
    event.events = e.events;
    event.data.u64 = e.data;
    real->epoll_ctl(e.set, EPOLL_CTL_ADD, e.fd, &event);
  }
}

bool find_everyone(const pending_race& r, fd_list& aliases, epoll_entry_list& entries) {
  return !is_shared_with_relatives(r.fd) && find_aliases(r.fd, r.original_dup.get(), aliases) &&
         find_epoll_entries(aliases, entries);
}

}  // namespace

bool can_hand_over(const pending_race& r) {
  fd_list aliases;
  epoll_entry_list entries;
  return find_everyone(r, aliases, entries);
}

bool hand_over(pending_race& r) {
  if (socket_cookie(r.fd) != r.cookie || !r.winner_socket.is_ours()) return false;
  fd_list aliases;
  epoll_entry_list entries;
  if (!find_everyone(r, aliases, entries)) return false;
  unregister(entries);
  bool done = false;
  for (const int alias : aliases) {
    const bool replaced = real->dup3(r.winner_socket.get(), alias, close_on_exec_of(alias)) >= 0;
    if (alias == r.fd) done = replaced;
  }
  register_again(entries);
  return done;
}

}  // namespace happy
