// The hooks of the calls after which a number means something else, or means the same to another program: a race on it
// ends first.

#include <sys/socket.h>
#include <unistd.h>

#include <climits>

#include "shim/engine_calls.h"
#include "shim/late_function.h"
#include "shim/pending.h"
#include "shim/readable.h"

namespace happy {
namespace {

constinit late_function<decltype(&::close)> real_close{"close"};
constinit late_function<int (*)(int, int)> real_dup2{"dup2"};
constinit late_function<int (*)(int, int, int)> real_dup3{"dup3"};
constinit late_function<int (*)(unsigned, unsigned, int)> real_close_range{"close_range"};
constinit late_function<void (*)(int)> real_closefrom{"closefrom"};

void tell_leaving(const int* fds, unsigned count) {
  tell_engine([&](const happy_engine& engine) { engine.fds_leaving(fds, count); });
}

// Those that the message carries. What cannot be read, or makes no sense, the kernel refuses.
void tell_carried(const msghdr& message) {
  if (!is_readable(message.msg_control, message.msg_controllen)) return;
  const auto* const end = static_cast<const char*>(message.msg_control) + message.msg_controllen;
  for (const cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(part))) {
    const auto room = static_cast<std::size_t>(end - reinterpret_cast<const char*>(part));
    if (part->cmsg_len < CMSG_LEN(0) || part->cmsg_len > room) return;
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t size = part->cmsg_len - CMSG_LEN(0);
    tell_leaving(reinterpret_cast<const int*>(CMSG_DATA(part)),
                 static_cast<unsigned>(size / sizeof(int)));
  }
}

}  // namespace

void note_exec() {
  if (races_pending()) tell_leaving(nullptr, 0);
}

void note_sending(const msghdr* message) {
  if (races_pending() && is_readable(message, sizeof *message)) tell_carried(*message);
}

void note_closing(unsigned first, unsigned last) {
  if (races_pending())
    tell_engine([&](const happy_engine& engine) { engine.fds_closing(first, last); });
}

}  // namespace happy

extern "C" {

__attribute__((visibility("default"))) int close(int fd) {
  if (fd >= 0) happy::note_closing(static_cast<unsigned>(fd), static_cast<unsigned>(fd));
  return happy::real_close.get()(fd);
}

__attribute__((visibility("default"))) int dup2(int from, int to) noexcept {
  if (to >= 0 && from != to)
    happy::note_closing(static_cast<unsigned>(to), static_cast<unsigned>(to));
  return happy::real_dup2.get()(from, to);
}

__attribute__((visibility("default"))) int dup3(int from, int to, int flags) noexcept {
  if (to >= 0 && from != to)
    happy::note_closing(static_cast<unsigned>(to), static_cast<unsigned>(to));
  return happy::real_dup3.get()(from, to, flags);
}

__attribute__((visibility("default"))) int close_range(unsigned first, unsigned last,
                                                       int flags) noexcept {
  if ((flags & CLOSE_RANGE_CLOEXEC) == 0) happy::note_closing(first, last);
  return happy::real_close_range.get()(first, last, flags);
}

__attribute__((visibility("default"))) void closefrom(int lowest) noexcept {
  happy::note_closing(lowest < 0 ? 0U : static_cast<unsigned>(lowest), UINT_MAX);
  happy::real_closefrom.get()(lowest);
}

}  // extern "C"
