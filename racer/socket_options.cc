#include "racer/socket_options.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "resolver/clock.h"
#include "resolver/hidden_fd.h"
#include "shim/base/ip_options.h"
#include "shim/base/real_functions.h"
#include "shim/base/unique_fd.h"

namespace happy {
namespace {

// Not in glibc 2.36's headers.
constexpr int ip_local_port_range = 51;
constexpr int so_max_pacing_rate = 47;

enum class value_form : unsigned char {
  plain,   // set what was read
  buffer,  // SO_RCVBUF and SO_SNDBUF read back doubled
};

enum class weight : unsigned char {
  wish,   // a refusal changes comfort, not meaning
  route,  // it decides where packets go
};

enum class sockets : unsigned char {
  all,
  stream,
  datagram,
  streams_seldom,  // of no use to streams: where the program has never set one, they are not asked
};

struct option_name {
  int level = 0;
  int name = 0;

  friend constexpr bool operator==(option_name, option_name) = default;
};

struct option {
  option_name ipv4;  // level 0 and name 0: this family has no such option
  option_name ipv6;
  value_form form = value_form::plain;
  weight importance = weight::wish;
  sockets of = sockets::all;
};

constexpr option on_both(int level, int name, value_form form = value_form::plain,
                         weight importance = weight::wish) {
  const sockets of = level == IPPROTO_TCP   ? sockets::stream
                     : level == IPPROTO_UDP ? sockets::datagram
                                            : sockets::all;
  return {{level, name}, {level, name}, form, importance, of};
}

constexpr option translated(int ipv4, int ipv6, weight importance = weight::wish) {
  return {{IPPROTO_IP, ipv4}, {IPPROTO_IPV6, ipv6}, value_form::plain, importance};
}

constexpr option only_ipv6(int name) { return {{0, 0}, {IPPROTO_IPV6, name}}; }

// SO_BINDTODEVICE and SO_MARK come first: copying the rest is wasted where they are refused.
constexpr option plain_options[] = {
    on_both(SOL_SOCKET, SO_BINDTODEVICE, value_form::plain, weight::route),
    on_both(SOL_SOCKET, SO_MARK, value_form::plain, weight::route),
    translated(IP_TRANSPARENT, IPV6_TRANSPARENT, weight::route),
    translated(IP_FREEBIND, IPV6_FREEBIND, weight::route),
    translated(IP_UNICAST_IF, IPV6_UNICAST_IF, weight::route),
    only_ipv6(IPV6_V6ONLY),

    on_both(SOL_SOCKET, SO_REUSEADDR),
    on_both(SOL_SOCKET, SO_REUSEPORT),
    on_both(SOL_SOCKET, SO_KEEPALIVE),
    on_both(SOL_SOCKET, SO_LINGER),
    on_both(SOL_SOCKET, SO_OOBINLINE),
    on_both(SOL_SOCKET, SO_DONTROUTE),
    on_both(SOL_SOCKET, SO_BROADCAST),
    on_both(SOL_SOCKET, SO_PRIORITY),
    on_both(SOL_SOCKET, SO_RCVBUF, value_form::buffer),
    on_both(SOL_SOCKET, SO_SNDBUF, value_form::buffer),
    on_both(SOL_SOCKET, SO_RCVLOWAT),
    on_both(SOL_SOCKET, SO_RCVTIMEO),
    on_both(SOL_SOCKET, SO_TIMESTAMP),
    on_both(SOL_SOCKET, SO_TIMESTAMPING),
    on_both(SOL_SOCKET, SO_BUSY_POLL),
    on_both(SOL_SOCKET, so_max_pacing_rate),
    on_both(SOL_SOCKET, SO_ZEROCOPY),

    on_both(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT),
    on_both(IPPROTO_IP, ip_local_port_range),
    only_ipv6(IPV6_AUTOFLOWLABEL),
    only_ipv6(IPV6_ADDR_PREFERENCES),

    on_both(IPPROTO_TCP, TCP_NODELAY),
    on_both(IPPROTO_TCP, TCP_CORK),
    on_both(IPPROTO_TCP, TCP_KEEPIDLE),
    on_both(IPPROTO_TCP, TCP_KEEPINTVL),
    on_both(IPPROTO_TCP, TCP_KEEPCNT),
    on_both(IPPROTO_TCP, TCP_USER_TIMEOUT),
    on_both(IPPROTO_TCP, TCP_SYNCNT),
    on_both(IPPROTO_TCP, TCP_LINGER2),
    on_both(IPPROTO_TCP, TCP_CONGESTION),
    on_both(IPPROTO_TCP, TCP_NOTSENT_LOWAT),
    on_both(IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS),
    on_both(IPPROTO_TCP, TCP_INQ),

    on_both(IPPROTO_UDP, UDP_CORK),
    on_both(IPPROTO_UDP, UDP_SEGMENT),
    on_both(IPPROTO_UDP, UDP_GRO),
};

// Of UDP sockets alone. Multicast goes natively or not at all.
constexpr option datagram_options[] = {
    on_both(SOL_SOCKET, SO_TIMESTAMPNS),    on_both(SOL_SOCKET, SO_RXQ_OVFL),
    on_both(IPPROTO_IP, IP_MULTICAST_IF),   on_both(IPPROTO_IP, IP_MULTICAST_TTL),
    on_both(IPPROTO_IP, IP_MULTICAST_LOOP), on_both(IPPROTO_IP, IP_MULTICAST_ALL),
};

// The error queue is another matter: copy_file_state().
constexpr bool is_error_queue(const ip_option& o) { return o.ipv4 == IP_RECVERR; }

// ip_options, each in two rows: as it is, and as what means the same to the other family, which wins. They are next to
// each other, so that an IPv4 socket is asked once for both.
constexpr auto make_options() {
  std::array<option,
             std::size(plain_options) + std::size(datagram_options) + 2 * std::size(ip_options)>
      all{};
  auto* next = std::copy(std::begin(plain_options), std::end(plain_options), all.begin());
  for (option o : datagram_options) {
    o.of = sockets::datagram;
    *next++ = o;
  }
  for (const ip_option& o : ip_options) {
    if (is_error_queue(o)) continue;
    option same = on_both(IPPROTO_IP, o.ipv4);
    option other = translated(o.ipv4, o.ipv6);
    same.of = other.of = o.datagrams ? sockets::streams_seldom : sockets::all;
    *next++ = same;
    if (o.ipv6 != 0) *next++ = other;
  }
  return all;
}
constexpr auto options = make_options();

// The largest value in the table: a struct timeval, an interface name, a congestion algorithm.
struct option_value {
  char bytes[16]{};
  socklen_t length = 0;
  bool known = false;

  friend bool operator==(const option_value& a, const option_value& b) {
    return a.known == b.known && a.length == b.length &&
           std::memcmp(a.bytes, b.bytes, a.length) == 0;
  }
};

option_name name_in(const option& o, family f) { return f == family::ipv4 ? o.ipv4 : o.ipv6; }

option_value read_option(int fd, option_name name) {
  option_value value;
  value.length = sizeof value.bytes;
  value.known = real->getsockopt(fd, name.level, name.name, value.bytes, &value.length) == 0;
  if (!value.known) value.length = 0;
  return value;
}

int read_int(int fd, int level, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  return real->getsockopt(fd, level, name, &value, &length) == 0 ? value : 0;
}

constinit const std::uint32_t* datagram_options_set = nullptr;

bool has(int protocol, sockets of) {
  if (protocol == IPPROTO_UDP) return of != sockets::stream;
  const bool seldom = datagram_options_set == nullptr ||
                      __atomic_load_n(datagram_options_set, __ATOMIC_RELAXED) != 0;
  return of != sockets::datagram && (of != sockets::streams_seldom || seldom);
}

// Calls `visit(i, value)` with the value of each option that such a socket has, until it returns false.
template <typename Visit>
bool visit_options(int fd, family f, int protocol, Visit&& visit) {
  option_name last;
  option_value value;
  for (std::size_t i = 0; i < std::size(options); ++i) {
    const option_name name = name_in(options[i], f);
    if (name.name == 0 || !has(protocol, options[i].of)) continue;
    if (name != last) value = read_option(fd, name);
    last = name;
    if (!visit(i, value)) return false;
  }
  return true;
}

bool set_buffer(int fd, option_name name, option_value value) {
  int doubled = 0;
  std::memcpy(&doubled, value.bytes, sizeof doubled);
  const int size = doubled / 2;
  const int forced = name.name == SO_RCVBUF ? SO_RCVBUFFORCE : SO_SNDBUFFORCE;
  return real->setsockopt(fd, SOL_SOCKET, forced, &size, sizeof size) == 0 ||
         real->setsockopt(fd, SOL_SOCKET, name.name, &size, sizeof size) == 0;
}

bool write_option(int fd, const option& o, option_name name, const option_value& value) {
  if (o.form == value_form::buffer) return set_buffer(fd, name, value);
  return real->setsockopt(fd, name.level, name.name, value.bytes, value.length) == 0;
}

// False if the option is one that decides the route and could not be set.
bool copy_option(const option& o, const option_value& value, const option_value& fresh, int attempt,
                 family to) {
  const option_name target = name_in(o, to);
  if (target.name == 0 || !value.known || value == fresh) return true;
  return write_option(attempt, o, target, value) || o.importance == weight::wish;
}

// What a socket has that nobody has set anything on. The system's settings decide, and those change rarely: what was
// read is good for `fresh_lifetime`. Half of what a copy costs.
struct fresh_options {
  int protocol = -1;
  time_point read_at = time_point::min();
  option_value values[std::size(options)];
};
constexpr duration fresh_lifetime = std::chrono::seconds(1);

constinit fresh_options of_fresh[2];  // by family; the engine's lock is around it

// nullptr, with errno: no socket can be had.
const fresh_options* find_fresh(family f, int protocol) {
  fresh_options& known = of_fresh[f == family::ipv4 ? 0 : 1];
  const time_point now = clock_now();
  if (known.protocol == protocol && now - known.read_at < fresh_lifetime) return &known;
  const int type = protocol == IPPROTO_UDP ? SOCK_DGRAM : SOCK_STREAM;
  const unique_fd fresh(real->socket(to_af(f), type | SOCK_CLOEXEC, protocol));
  if (!fresh.valid()) return nullptr;
  visit_options(fresh.get(), f, protocol, [&](std::size_t i, const option_value& value) {
    known.values[i] = value;
    return true;
  });
  known.protocol = protocol;
  known.read_at = now;
  return &known;
}

// FNV-1a.
class digest {
 public:
  explicit digest(family f) { add(&f, sizeof f); }
  void add(const option_value& value) {
    add(&value.known, sizeof value.known);
    add(value.bytes, value.length);
  }
  options_digest value() const { return value_; }

 private:
  void add(const void* bytes, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) {
      value_ = (value_ ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
    }
  }
  options_digest value_ = 0xcbf29ce484222325;
};

// The user's TCP_MAXSEG shows only before connect(); this is what the kernel shows without one.
constexpr int default_maximum_segment = 536;

void copy_early(int attempt, const early_options& early) {
  if (early.maximum_segment != 0 && early.maximum_segment != default_maximum_segment) {
    real->setsockopt(attempt, IPPROTO_TCP, TCP_MAXSEG, &early.maximum_segment, sizeof(int));
  }
  if (early.mark >= 0)
    real->setsockopt(attempt, SOL_SOCKET, SO_MARK, &early.mark, sizeof early.mark);
  if (early.send_timeout.tv_sec != 0 || early.send_timeout.tv_usec != 0) {
    real->setsockopt(attempt, SOL_SOCKET, SO_SNDTIMEO, &early.send_timeout,
                     sizeof early.send_timeout);
  }
}

option_name error_queue_option(family f) {
  return f == family::ipv4 ? option_name{IPPROTO_IP, IP_RECVERR}
                           : option_name{IPPROTO_IPV6, IPV6_RECVERR};
}

}  // namespace

void watch_datagram_options(const std::uint32_t* set) { datagram_options_set = set; }

bool has_uncopyable_options(int fd, family socket_family) {
  socklen_t filter_length = 0;
  if (real->getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, nullptr, &filter_length) == 0 &&
      filter_length > 0) {
    return true;
  }
  if (read_int(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT) != 0) return true;
  if (socket_family == family::ipv6) return false;
  char header_options[40];  // the longest an IPv4 header can carry
  socklen_t length = sizeof header_options;
  return real->getsockopt(fd, IPPROTO_IP, IP_OPTIONS, header_options, &length) == 0 && length > 0;
}

options_digest digest_options(int fd, family socket_family) {
  digest all(socket_family);
  visit_options(fd, socket_family, read_int(fd, SOL_SOCKET, SO_PROTOCOL),
                [&](std::size_t, const option_value& value) { return all.add(value), true; });
  return all.value();
}

bool have_same_route(int a, family family_of_a, int b, family family_of_b) {
  return std::all_of(std::begin(options), std::end(options), [&](const option& o) {
    if (o.importance != weight::route) return true;
    const option_value of_a = read_option(a, name_in(o, family_of_a));
    const option_value of_b = read_option(b, name_in(o, family_of_b));
    return !of_a.known || !of_b.known || of_a == of_b;
  });
}

result<options_digest> copy_options(int original, family original_family, int attempt,
                                    family attempt_family, const early_options& early) {
  // What differs from a fresh socket of the same kind was set by the program.
  const int protocol = read_int(original, SOL_SOCKET, SO_PROTOCOL);
  const fresh_options* fresh = find_fresh(original_family, protocol);
  if (fresh == nullptr) return result<options_digest>::failure(errno);
  digest all(original_family);
  const bool copied = visit_options(
      original, original_family, protocol, [&](std::size_t i, const option_value& value) {
        all.add(value);
        return copy_option(options[i], value, fresh->values[i], attempt, attempt_family);
      });
  if (!copied) return result<options_digest>::failure(ENOTSUP);
  copy_early(attempt, early);
  return all.value();
}

void want_soft_errors(int attempt, family f) {
  const int on = 1;
  const option_name name = error_queue_option(f);
  real->setsockopt(attempt, name.level, name.name, &on, sizeof on);
}

bool copy_file_state(int original, family original_family, int attempt, family attempt_family,
                     socket_use use) {
  const option_name theirs = error_queue_option(original_family);
  const option_name ours = error_queue_option(attempt_family);
  const int wanted = read_int(original, theirs.level, theirs.name);
  if (wanted != 0 || use == socket_use::attempt)
    real->setsockopt(attempt, ours.level, ours.name, &wanted, sizeof wanted);
  if (attempt_family == family::ipv6) {  // what it shows as an IPv4 socket
    const int shown =
        original_family == family::ipv4 ? wanted : read_int(original, IPPROTO_IP, IP_RECVERR);
    if (shown != 0) real->setsockopt(attempt, IPPROTO_IP, IP_RECVERR, &shown, sizeof shown);
  }

  f_owner_ex owner{};
  if (real->fcntl(original, F_GETOWN_EX, &owner) == 0 && owner.pid != 0) {
    real->fcntl(attempt, F_SETOWN_EX, &owner);
    real->fcntl(attempt, F_SETSIG, real->fcntl(original, F_GETSIG));
  }
  const int flags = real->fcntl(original, F_GETFL);
  if (flags == O_RDWR && use == socket_use::fresh) return true;
  return flags >= 0 && real->fcntl(attempt, F_SETFL, flags) == 0;
}

}  // namespace happy
