#include "racer/synthesis.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <utility>

#include "racer/connect_call.h"
#include "racer/handover.h"
#include "racer/progress.h"
#include "resolver/clock.h"
#include "resolver/connectivity.h"
#include "resolver/source_address.h"
#include "shim/base/handler_sign.h"
#include "shim/base/raw_syscall.h"

namespace happy {
namespace {

void trace_synthesis(int fd, const endpoint& named, const address& to) {
  if (!trace_on()) return;
  json_line line = trace_line("synthesis", 0);
  line.number("fd", fd).where("endpoint", named).where("by", {to, named.port});
  emit(line);
}

std::uint32_t in_network_order(const address& ipv4) {
  std::uint32_t value = 0;
  std::memcpy(&value, ipv4.bytes.data(), sizeof value);
  return value;
}

// A signal handler may have interrupted malloc(). Some 60 system calls.
bool may_allocate(const happy_synthesis& call) { return !may_be_in_handler(call.signals); }

// ---- which prefixes ----

bool may_wait(const happy_synthesis& call) {
  if (call.fd < 0) return call.may_wait != 0;
  return (real->fcntl(call.fd, F_GETFL) & O_NONBLOCK) == 0;
}

std::int64_t in_ns(time_point t) { return t.time_since_epoch().count(); }

// POLL: wait for the DNS; DONE: what is known now is all.
happy_lookup_step discover(core& c, happy_synthesis& call, time_point now) {
  c.translator.note_ipv6_only(is_ipv6_only());
  if (!c.translator.may_discover(now) || !is_ipv6_only()) return HAPPY_LOOKUP_DONE;
  if (!may_allocate(call)) return HAPPY_LOOKUP_DONE;
  c.translator.begin_discovery(++c.last_id, *c.files.current(), now);
  if (c.translator.turn(now) || !c.translator.is_waited_for()) return HAPPY_LOOKUP_DONE;
  if (call.deadline_ns == 0)
    call.deadline_ns = in_ns(now + (may_wait(call) ? blocking_patience : non_blocking_patience));
  if (in_ns(now) >= call.deadline_ns) {
    c.translator.stop_waiting(now);
    return HAPPY_LOOKUP_DONE;
  }
  lookup& query = *c.translator.query();
  const auto fds = query.poll_set();
  std::copy(fds.begin(), fds.end(), call.fds);
  call.fd_count = fds.size();
  const time_point own{duration(call.deadline_ns)};
  call.timeout_ms = wait_ms(std::min(query.wait_until(now), own), now);
  return HAPPY_LOOKUP_POLL;
}

// The pool's addresses never leave the host; what another process of the same user was handed may have come here.
bool may_be_somebody_elses_name(const core& c, const address& ipv4) {
  const auto where = static_cast<bridging>(c.host.settings->bridge);
  return where != bridging::nowhere && c.bridges.is_in_pool(ipv4);
}

// ---- which endpoints ----

using candidate_list = std::vector<candidate>;

void append(candidate_list& list, const address& a) {
  if (!holds(list, a) && list.size() < max_candidates) list.push_back({.destination = a});
}

// Whether find_candidates() would find more than one. Does not allocate.
bool has_several(core& c, const address& ipv4, std::size_t own_count, time_point now) {
  known_destination known;
  return own_count > 1 ||
         (c.intents.find({ipv4, 0}, raw_gettid(), now, known) && known.candidates.size() > 1);
}

// The named address first, then the others of its name: as the program would go on.
candidate_list find_candidates(core& c, const address& ipv4, const prefix_list& prefixes,
                               time_point now) {
  candidate_list list;
  for (const address& a : synthesised(prefixes, ipv4)) append(list, a);
  known_destination known;
  if (list.empty() || !c.intents.find({ipv4, 0}, raw_gettid(), now, known)) return list;
  for (const candidate& other : known.candidates) {
    if (other.destination.family == family::ipv6) {
      append(list, other.destination);
      continue;
    }
    for (const address& a : synthesised(prefixes, other.destination)) append(list, a);
  }
  return list;
}

// So that connect_begin() finds them.
void remember_candidates(core& c, candidate_list&& list, time_point now) {
  source_probe probe;
  for (candidate& known : list) probe.probe(known, 0);
  intent meant;
  meant.id = ++c.last_id;
  meant.thread = raw_gettid();
  meant.made = now;
  meant.ipv4 = false;
  meant.candidates = std::move(list);
  mark_addresses(c, meant);
  c.intents.add(std::move(meant));
}

// ---- the socket ----

// HAPPY_UDP=1
bool is_datagram(const pending_race& r) { return r.original.protocol == IPPROTO_UDP; }

// `r.cookie` is that of the socket that is meant, or 0.
bool read_socket_state(const core& c, pending_race& r, endpoint& bound) {
  if (!read_socket(r.fd, SOL_SOCKET, SO_PROTOCOL, r.original.protocol)) return false;
  const int protocol = r.original.protocol;
  const bool stream = protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP;
  if (!stream && !(c.host.settings->udp != 0 && is_datagram(r))) return false;
  if (!read_local(r.fd, bound)) return false;
  const std::uint64_t meant = std::exchange(r.cookie, socket_cookie(r.fd));
  return r.cookie != 0 && (meant == 0 || meant == r.cookie);
}

// While one lives, another socket may be bound to the port of this one.
class shared_port {
 public:
  shared_port(int original, int fd) : fds_{original, fd} {
    for (int i = 0; i < 2; ++i) {
      known_[i] = read_socket(fds_[i], SOL_SOCKET, SO_REUSEADDR, before_[i]);
      if (known_[i]) set(i, 1);
    }
  }
  ~shared_port() {
    for (int i = 0; i < 2; ++i) {
      if (known_[i]) set(i, before_[i]);
    }
  }
  shared_port(const shared_port&) = delete;
  shared_port& operator=(const shared_port&) = delete;

 private:
  void set(int i, int value) {
    real->setsockopt(fds_[i], SOL_SOCKET, SO_REUSEADDR, &value, sizeof value);
  }
  int fds_[2];
  int before_[2]{};
  bool known_[2]{};
};

bool bind_to_any_address(int fd, std::uint16_t port) {
  const socket_address local = to_sockaddr({address{.family = family::ipv6}, port});
  return real->bind(fd, local.get(), local.length) == 0;
}

bool set_only_ipv6(int fd, int on) {
  return real->setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0;
}

// A port that the kernel has chosen belongs to a UDP socket until it is disconnected.
bool gives_up_port(const pending_race& r) {
  const sockaddr nothing{.sa_family = AF_UNSPEC, .sa_data = {}};
  return is_datagram(r) && real->connect(r.fd, &nothing, sizeof nothing) == 0 &&
         local_port(r.fd) == 0;
}

// The program may know the port: by its choice, or from getsockname(). Its own socket holds it still. For both families,
// because some IPv4 destinations may have a route of their own. Where somebody else has the port for IPv6, another one
// is better than none, but only if the program did not ask for this one.
bool bind_port(const pending_race& r, int fd, std::uint16_t port) {
  if (port == 0) return true;
  {
    const shared_port both(r.original.fd, fd);
    if (bind_to_any_address(fd, port)) return true;
  }
  if (set_only_ipv6(fd, 1) && bind_to_any_address(fd, port)) return true;
  return set_only_ipv6(fd, 0) && gives_up_port(r);
}

// An AF_INET6 socket of the same kind. Nobody else opens files where there is no other thread: it need not be hidden.
result<guarded_socket> make_ipv6_socket(const pending_race& r) {
  const int type = is_datagram(r) ? SOCK_DGRAM : SOCK_STREAM;
  const int fd = real->socket(AF_INET6, type | SOCK_CLOEXEC, r.original.protocol);
  return r.single_threaded ? guarded_socket::own(fd) : guarded_socket::adopt(fd);
}

// Puts a new AF_INET6 socket in the likeness of the program's in its place.
bool replace_socket(core& c, pending_race& r, const endpoint& bound, const address& ipv4) {
  const family before = bound.address.family;
  r.original.fd = r.fd;
  r.original.socket_family = before;
  if (!is_datagram(r)) read_socket(r.fd, IPPROTO_TCP, TCP_MAXSEG, r.original.early.maximum_segment);
  read_socket(r.fd, SOL_SOCKET, SO_SNDTIMEO, r.original.early.send_timeout);
  if (has_uncopyable_options(r.fd, before)) return false;
  result<guarded_socket> made = make_ipv6_socket(r);
  if (!made.ok() || !same_network(r.fd, made.value().get())) return false;
  const int fd = made.value().get();
  if (!copy_options(r.fd, before, fd, family::ipv6, r.original.early).ok()) return false;
  if (!bind_port(r, fd, bound.port)) return false;
  if (!copy_file_state(r.fd, before, fd, family::ipv6, socket_use::fresh)) return false;
  r.winner_socket = std::move(made.value());
  c.host.note_translated(r.winner_socket.cookie(), in_network_order(ipv4),
                         is_datagram(r) ? HAPPY_TRANSLATED_DATAGRAM : 0);
  return replace_unconnected(r);
}

// Whether an IPv4 destination means to this AF_INET6 socket what the program thinks.
bool takes_mapped(int fd) {
  int only = 0;
  return read_socket(fd, IPPROTO_IPV6, IPV6_V6ONLY, only) && only == 0;
}

// The network may have another prefix by the time that an answer comes.
void note_way(core& c, const prefix_list& prefixes) {
  for (const nat64_prefix& prefix : prefixes) {
    if (contains(c.gone_by, prefix)) continue;
    if (c.gone_by.full()) c.gone_by.erase(c.gone_by.size() - 1);
    c.gone_by.insert(0, prefix);
  }
}

// `connects`: the address becomes the name of the socket's peer. A UDP socket that has received from a peer by IPv4 never
// receives from one by IPv6 again (of the kernel's socket the route of what it received last is used: 6.18).
bool prepare_socket(core& c, pending_race& r, const endpoint& named, bool connects) {
  endpoint bound;
  if (!read_socket_state(c, r, bound)) return false;
  const address ipv4 = unmapped(named.address);
  std::uint32_t before = 0;
  std::uint32_t flags = 0;
  if (c.host.find_translated(r.cookie, &before, &flags) != 0) {
    if (connects && is_datagram(r) && is_v4_mapped(bound.address))
      return replace_socket(c, r, bound, ipv4);
    if (connects) c.host.note_translated(r.cookie, in_network_order(ipv4), flags);
    return true;
  }
  const bool free_address = bound.address.bytes == address{}.bytes;
  if (!free_address) return false;
  if (is_v4_mapped(named.address)) {
    if (bound.address.family != family::ipv6 || !takes_mapped(r.fd)) return false;
    c.host.note_translated(
        r.cookie, in_network_order(ipv4),
        HAPPY_TRANSLATED_MAPPED | (is_datagram(r) ? HAPPY_TRANSLATED_DATAGRAM : 0));
    return true;
  }
  return bound.address.family == family::ipv4 && replace_socket(c, r, bound, ipv4);
}

// `leave_others` remembers all endpoints that could be tried, `to` among them, where there are several; it allocates.
template <typename Leave>
happy_lookup_step translate(core& c, happy_synthesis& call, const endpoint& named,
                            const address& to, bool several, Leave&& leave_others) {
  if (call.fd >= 0) {
    pending_race* r = c.races.acquire();
    if (r == nullptr) return HAPPY_LOOKUP_DECLINED;
    r->fd = call.fd;
    r->cookie = call.cookie;
    r->single_threaded = call.single_threaded != 0;
    r->named = named;
    const bool ready = prepare_socket(c, *r, named, call.connects != 0);
    const bool datagram = is_datagram(*r);
    c.races.release(*r);
    if (!ready) return HAPPY_LOOKUP_DECLINED;
    call.raced = !datagram && several && may_allocate(call) ? 1 : 0;
    if (call.raced != 0) leave_others();
    if (!datagram || call.connects != 0) trace_synthesis(call.fd, named, to);
  }
  const socket_address destination = to_sockaddr({to, named.port});
  std::memcpy(&call.destination, &destination.storage, sizeof call.destination);
  return HAPPY_LOOKUP_DONE;
}

}  // namespace

happy_lookup_step synthesise(core& c, happy_synthesis& call) {
  endpoint named;
  if (!from_sockaddr(call.to, call.length, named)) return HAPPY_LOOKUP_DECLINED;
  if (unmapped(named.address).family != family::ipv4) return HAPPY_LOOKUP_DECLINED;
  core_guard guard(c);
  const time_point now = clock_now();
  const address ipv4 = unmapped(named.address);
  if (const bridged_name* known = c.bridges.find(ipv4)) {
    call.bridged = 1;
    if (known->candidates.empty()) return HAPPY_LOOKUP_DECLINED;
    return translate(c, call, named, known->candidates.front().destination,
                     known->candidates.size() > 1,
                     [&] { remember_candidates(c, candidate_list(known->candidates), now); });
  }
  if (c.translator.off() || may_be_somebody_elses_name(c, ipv4)) return HAPPY_LOOKUP_DECLINED;
  c.translator.note_network(network_fingerprint());
  prefix_list prefixes = c.translator.prefixes(now);
  if (prefixes.empty()) {
    if (discover(c, call, now) == HAPPY_LOOKUP_POLL) return HAPPY_LOOKUP_POLL;
    prefixes = c.translator.prefixes(now);
  }
  const auto own = synthesised(prefixes, ipv4);
  if (own.empty()) return HAPPY_LOOKUP_DECLINED;
  if (c.host.settings->udp != 0) note_way(c, prefixes);
  return translate(c, call, named, own[0], has_several(c, ipv4, own.size(), now),
                   [&] { remember_candidates(c, find_candidates(c, ipv4, prefixes, now), now); });
}

bool ipv4_behind(core& c, const address& a, std::uint32_t& ipv4) {
  core_guard guard(c);
  auto inside = c.translator.ipv4_behind(a, clock_now());
  for (const nat64_prefix& prefix : c.gone_by) {
    if (!inside) inside = embedded_ipv4(prefix, a);
  }
  if (inside) {
    ipv4 = in_network_order(*inside);
    return true;
  }
  const bridged_name* name = c.bridges.find_by_endpoint(a);
  if (name != nullptr) ipv4 = in_network_order(name->ipv4);
  return name != nullptr;
}

bounded_vector<address, max_prefixes> synthesised(const prefix_list& prefixes,
                                                  const address& ipv4) {
  bounded_vector<address, max_prefixes> list;
  for (const nat64_prefix& p : prefixes) {
    if (may_synthesise(p, ipv4)) list.push_back(happy::synthesise(p, ipv4));
  }
  return list;
}

ipv4_outlook expect_nat64(core& c, time_point now) {
  c.translator.note_ipv6_only(is_ipv6_only());
  if (!is_ipv6_only()) return {};
  ipv4_outlook outlook{.ipv6_only = true};
  if (c.translator.off()) return outlook;
  c.translator.note_network(network_fingerprint());
  c.translator.turn(now);
  outlook.prefixes = c.translator.prefixes(now);
  if (outlook.prefixes.empty() && c.translator.may_discover(now)) {
    c.translator.begin_discovery(++c.last_id, *c.files.current(), now);
    c.translator.let_go(now);
  }
  return outlook;
}

bool has_last_resort(core& c, const pending_race& r, time_point now) {
  const intent* meant = c.intents.by_id(r.known.id);
  if (meant == nullptr || meant->last_resort == nullptr || c.translator.off()) return false;
  return is_ipv6_only() && (c.translator.query() != nullptr || c.translator.may_discover(now) ||
                            !c.translator.prefixes(now).empty());
}

void ask_last_resort(core& c, pending_race& r, time_point now) {
  intent* meant = c.intents.by_id(r.known.id);
  if (meant == nullptr || meant->last_resort == nullptr) return;
  expect_nat64(c, now);
  resolution::settings s;
  s.name = meant->last_resort->name;
  s.ipv6 = false;
  s.complete = true;
  s.deadline = now + late_answer_lifetime;
  auto asked = std::make_unique<lookup>(meant->id, *meant->last_resort, s);
  asked->make_last_resort(s.deadline);
  asked->turn(now);
  r.lookup = meant->id;
  r.last_resort = false;
  meant->last_resort = nullptr;
  bound_open_lookups(c);
  c.open_lookups.push_back(std::move(asked));
  service_lookups(c, now);
}

void keep_translation(core& c, const pending_race& r) {
  if (!r.won) return;
  const bool mapped_view = is_v4_mapped(r.named.address);
  std::uint32_t ipv4 = 0;
  std::uint32_t flags = mapped_view ? HAPPY_TRANSLATED_MAPPED : 0;
  const bool before = c.host.find_translated(r.cookie, &ipv4, &flags) != 0;
  const bool named_ipv4 = unmapped(r.named.address).family == family::ipv4;
  if (!before && !named_ipv4) return;
  const auto inside = c.translator.ipv4_behind(r.winner.address, clock_now());
  if (!inside && !before) return;
  c.host.note_translated(r.winner_socket.cookie(), inside ? in_network_order(*inside) : ipv4,
                         flags);
}

}  // namespace happy
