#include "racer/socket_options.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "resolver/clock.h"
#include "resolver/hidden_fd.h"
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

struct option_name {
  int level;
  int name;
};

struct option {
  option_name ipv4;  // level 0 and name 0: this family has no such option
  option_name ipv6;
  value_form form = value_form::plain;
  weight importance = weight::wish;
};

constexpr option on_both(int level, int name, value_form form = value_form::plain,
                         weight importance = weight::wish) {
  return {{level, name}, {level, name}, form, importance};
}

constexpr option translated(int ipv4, int ipv6, weight importance = weight::wish) {
  return {{IPPROTO_IP, ipv4}, {IPPROTO_IPV6, ipv6}, value_form::plain, importance};
}

constexpr option only_ipv4(int name) { return {{IPPROTO_IP, name}, {0, 0}}; }
constexpr option only_ipv6(int name) { return {{0, 0}, {IPPROTO_IPV6, name}}; }

// SO_BINDTODEVICE and SO_MARK come first: copying the rest is wasted where they are refused.
constexpr option options[] = {
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

    translated(IP_TOS, IPV6_TCLASS),
    translated(IP_TTL, IPV6_UNICAST_HOPS),
    translated(IP_MTU_DISCOVER, IPV6_MTU_DISCOVER),
    translated(IP_RECVTOS, IPV6_RECVTCLASS),
    translated(IP_RECVTTL, IPV6_RECVHOPLIMIT),
    translated(IP_MINTTL, IPV6_MINHOPCOUNT),
    on_both(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT),
    on_both(IPPROTO_IP, ip_local_port_range),
    only_ipv4(IP_PASSSEC),
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
};

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
  for (std::size_t i = 0; i < std::size(options); ++i) {
    const option_name name = name_in(options[i], f);
    known.values[i] = name.name != 0 ? read_option(fresh.get(), name) : option_value{};
  }
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

bool has_uncopyable_options(int fd, family socket_family) {
  socklen_t filter_length = 0;
  if (real->getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, nullptr, &filter_length) == 0 &&
      filter_length > 0) {
    return true;
  }
  if (read_int(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT) != 0) return true;
  if (socket_family == family::ipv6) return false;
  char ip_options[40];  // the longest an IPv4 header can carry
  socklen_t length = sizeof ip_options;
  return real->getsockopt(fd, IPPROTO_IP, IP_OPTIONS, ip_options, &length) == 0 && length > 0;
}

options_digest digest_options(int fd, family socket_family) {
  digest all(socket_family);
  for (const option& o : options) {
    const option_name name = name_in(o, socket_family);
    if (name.name != 0) all.add(read_option(fd, name));
  }
  return all.value();
}

result<options_digest> copy_options(int original, family original_family, int attempt,
                                    family attempt_family, const early_options& early) {
  // What differs from a fresh socket of the same kind was set by the program.
  const int protocol = read_int(original, SOL_SOCKET, SO_PROTOCOL);
  const fresh_options* fresh = find_fresh(original_family, protocol);
  if (fresh == nullptr) return result<options_digest>::failure(errno);
  digest all(original_family);
  for (std::size_t i = 0; i < std::size(options); ++i) {
    const option& o = options[i];
    const option_name source = name_in(o, original_family);
    if (source.name == 0) continue;
    const option_value value = read_option(original, source);
    all.add(value);
    if (!copy_option(o, value, fresh->values[i], attempt, attempt_family)) {
      return result<options_digest>::failure(ENOTSUP);
    }
  }
  copy_early(attempt, early);
  return all.value();
}

void want_soft_errors(int attempt, family f) {
  const int on = 1;
  const option_name name = error_queue_option(f);
  real->setsockopt(attempt, name.level, name.name, &on, sizeof on);
}

bool copy_file_state(int original, family original_family, int attempt, family attempt_family) {
  const option_name theirs = error_queue_option(original_family);
  const option_name ours = error_queue_option(attempt_family);
  const int wanted = read_int(original, theirs.level, theirs.name);
  real->setsockopt(attempt, ours.level, ours.name, &wanted, sizeof wanted);

  f_owner_ex owner{};
  if (real->fcntl(original, F_GETOWN_EX, &owner) == 0 && owner.pid != 0) {
    real->fcntl(attempt, F_SETOWN_EX, &owner);
    real->fcntl(attempt, F_SETSIG, real->fcntl(original, F_GETSIG));
  }
  const int flags = real->fcntl(original, F_GETFL);
  return flags >= 0 && real->fcntl(attempt, F_SETFL, flags) == 0;
}

}  // namespace happy
