#include "racer/veiled_connect.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "racer/connect_call.h"
#include "racer/handover.h"
#include "racer/open_files.h"
#include "racer/progress.h"
#include "racer/registrations.h"

namespace happy {
namespace {

// A packet to the loopback would leave by another interface.
bool is_tied_to_interface(int fd, family f) {
  char device[IFNAMSIZ];
  socklen_t length = sizeof device;
  if (real->getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, &length) != 0 || length > 0)
    return true;
  int index = 0;
  if (f == family::ipv4)
    read_socket(fd, IPPROTO_IP, IP_UNICAST_IF, index);
  else
    read_socket(fd, IPPROTO_IPV6, IPV6_UNICAST_IF, index);
  return index != 0;
}

// The wildcard address, so that the socket keeps the choice of its source address.
std::uint16_t take_port(int fd, family f) {
  address any{};
  any.family = f;
  const socket_address local = to_sockaddr({any, 0});
  real->bind(fd, local.get(), local.length);  // it may have a port already
  return local_port(fd);
}

constexpr address ipv4_loopback = make_ipv4(127, 0, 0, 1);

// A host without IPv6 has no ::1; its IPv6 sockets know the other one.
std::array<address, 2> loopbacks(family f) {
  if (f == family::ipv4) return {ipv4_loopback, ipv4_loopback};
  return {from_in6_addr(in6addr_loopback), mapped(ipv4_loopback)};
}

bool connect_to_itself(int fd, family f) {
  if (!drop_what_arrives(fd)) return false;
  const std::uint16_t port = take_port(fd, f);
  for (const address& loopback : loopbacks(f)) {
    const socket_address itself = to_sockaddr({loopback, port});
    if (port != 0 && real->connect(fd, itself.get(), itself.length) != 0 && errno == EINPROGRESS)
      return true;
  }
  take_what_arrives(fd);
  return false;
}

void connect_to_nothing(int fd) {
  const sockaddr nothing{.sa_family = AF_UNSPEC, .sa_data = {}};
  real->connect(fd, &nothing, sizeof nothing);
  int error = 0;
  read_socket(fd, SOL_SOCKET, SO_ERROR, error);  // the end of the handshake with itself
}

// The handshake with itself is given up: an error that the program sees, where the kernel would have
// refused connect() at once.
void show_some_failure(int fd, family f) {
  if (connect_to_itself(fd, f)) real->shutdown(fd, SHUT_RDWR);
}

// Between two attempts a socket shows a failure: whoever waits for it wakes, and would see that. While one
// lives, the program does not notice: the epoll sets do not have the socket, its owner gets no signal, and the
// hooks of poll() and select() look again (happy_pending::restarts).
class unnoticed {
 public:
  unnoticed(core& c, const pending_race& r, int fd) : fd_(fd), flags_(real->fcntl(fd, F_GETFL)) {
    fd_list numbers;
    find_aliases(fd, r.original_dup.get(), numbers);
    find_epoll_entries(numbers, r.original_dup.get(), entries_);
    __atomic_fetch_add(&c.host.pending->restarts, 1, __ATOMIC_SEQ_CST);
    if (!unregister(entries_)) entries_.clear();
    if (signals()) real->fcntl(fd_, F_SETFL, flags_ & ~O_ASYNC);
  }
  ~unnoticed() {
    if (signals()) real->fcntl(fd_, F_SETFL, flags_);
    register_again(entries_);
  }
  unnoticed(const unnoticed&) = delete;
  unnoticed& operator=(const unnoticed&) = delete;

 private:
  bool signals() const { return flags_ >= 0 && (flags_ & O_ASYNC) != 0; }

  int fd_;
  int flags_;
  epoll_entry_list entries_;
};

// Another thread of the program may have called connect() on it in just that moment.
bool is_under_way(int result) { return result == 0 || errno == EINPROGRESS || errno == EALREADY; }

// The hidden attempt could not even be made, for a reason of our own.
bool is_without_attempt(const pending_race& r) { return r.attempts.empty() && r.failures.empty(); }

// Everything is as it was before connect(): the record, and the socket, which has no attempt.
void unveil(core& c, pending_race& r) {
  trace_race_endpoint("unveiled", r, r.named);
  r.attempts.clear();
  r.failures.clear();
  r.sockets.clear();
  r.original_dup.reset();
  r.veiled = 0;
  r.active = r.armed = false;
  r.active_from = never;
  std::construct_at(&r.machine, c.timing);
  connect_to_nothing(r.fd);
  take_what_arrives(r.fd);
  count_pending(c);
}

}  // namespace

bool lacks_addresses(core& c, const pending_race& r, time_point now) {
  const intent* meant = c.intents.by_id(r.known.id);
  if (meant == nullptr || !meant->partial) return false;
  return meant->outgrown || lookup_is_open(c, r.lookup, now);
}

happy_step start_veiled(core& c, pending_race& r, happy_connect& call, time_point now) {
  const family f = r.original.socket_family;
  if (r.original.bound || is_tied_to_interface(r.fd, f)) return HAPPY_STEP_PASS;
  if (!adopt_original(r) || !can_hand_over(r) || !connect_to_itself(r.fd, f)) {
    r.original_dup.reset();
    return HAPPY_STEP_PASS;
  }
  r.veiled = r.cookie;
  r.active = true;
  r.sockets.push_back({r.fd, r.cookie, r.named});
  trace_race_endpoint("veiled", r, r.named);
  const handed outcome = hand_to_worker(c, r, call, now);
  if (outcome == handed::to_worker) {
    refresh_plan(c, r, now);
    advance(c, r, now);
  }
  if (outcome == handed::ended || !r.used || !is_without_attempt(r))
    return give(call, -1, EINPROGRESS);
  unveil(c, r);
  return HAPPY_STEP_PASS;
}

bool stands_for_own(const pending_race& r, const endpoint& where) {
  if (!r.non_blocking) return false;
  return r.swap || (r.veiled != 0 && where == r.named);
}

void lift_veil(const pending_race& r) {
  if (r.veiled == 0) return;
  const auto s = std::find_if(r.sockets.begin(), r.sockets.end(),
                              [&](const program_socket& x) { return x.cookie == r.veiled; });
  if (s == r.sockets.end() || socket_cookie(s->fd) != r.veiled || !is_connecting(s->fd)) return;
  errno_saver keep;
  const unnoticed change(the_core(), r, s->fd);
  connect_to_nothing(s->fd);
  take_what_arrives(s->fd);
  const socket_address named = to_sockaddr(s->where);
  const int result = real->connect(s->fd, named.get(), named.length);
  if (!is_under_way(result)) show_some_failure(s->fd, r.original.socket_family);
}

}  // namespace happy
