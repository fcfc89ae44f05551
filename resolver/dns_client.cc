#include "resolver/dns_client.h"

#include <sys/random.h>

#include <algorithm>
#include <atomic>

#include "resolver/dns_reply.h"
#include "resolver/dns_sockets.h"

namespace happy {
namespace {

// What glibc advertises; larger replies come over TCP.
constexpr int edns_payload = 1200;
constexpr int class_in = 1;

// One round is one try of every nameserver; the rounds are counted here, because c-ares doubles its
// timeout from one to the next and glibc does not.
constexpr int tries_per_round = 1;

// RFC 5452 s9.2. c-ares 1.18 takes its identifiers from rand() where /dev/urandom is missing.
std::uint16_t random_id() {
  std::uint16_t id = 0;
  if (getrandom(&id, sizeof id, GRND_NONBLOCK) == sizeof id) return id;
  timespec now{};
  real->clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint16_t>(now.tv_nsec);
}

using server_list = bounded_vector<address, max_nameservers>;

server_list in_order(const resolver_config& config) {
  static std::atomic<unsigned> queries{0};
  server_list servers = config.nameservers;
  if (config.rotate) {
    // The two queries of a lookup start at the same nameserver.
    const unsigned first = queries.fetch_add(1, std::memory_order_relaxed) / 2;
    std::rotate(servers.begin(), servers.begin() + first % servers.size(), servers.end());
  }
  std::stable_partition(servers.begin(), servers.end(),
                        [](const address& a) { return a.family == family::ipv6; });
  return servers;
}

// Every option that c-ares would otherwise look for in files and in the environment.
ares_options options_for(const resolver_config& config, std::uint16_t port) {
  static char lookups[] = "b";
  ares_options options{};
  options.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | (config.edns0 ? ARES_FLAG_EDNS : 0);
  options.ednspsz = edns_payload;
  options.timeout = config.timeout_s * 1000;
  options.tries = tries_per_round;
  options.ndots = config.ndots;
  options.udp_port = port;
  options.tcp_port = port;
  options.lookups = lookups;
  return options;
}

constexpr int options_given =
    ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
    ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT | ARES_OPT_SERVERS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS |
    ARES_OPT_SORTLIST | ARES_OPT_NOROTATE | ARES_OPT_SOCK_STATE_CB;

bool set_servers(ares_channel channel, const server_list& servers, std::uint16_t port) {
  ares_addr_port_node nodes[max_nameservers]{};
  for (std::size_t i = 0; i < servers.size(); ++i) {
    nodes[i].next = i + 1 < servers.size() ? &nodes[i + 1] : nullptr;
    nodes[i].family = to_af(servers[i].family);
    nodes[i].udp_port = port;
    nodes[i].tcp_port = port;
    std::memcpy(&nodes[i].addr, servers[i].bytes.data(),
                servers[i].family == family::ipv4 ? 4 : 16);
  }
  return ares_set_servers_ports(channel, nodes) == ARES_SUCCESS;
}

}  // namespace

class dns_query::state {
 public:
  state(const std::string& name, record_type type, const resolver_config& config)
      : name_(name), rounds_left_(config.attempts), payload_(config.edns0 ? edns_payload : 0) {
    answer_.type = type;
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    if (channel_ != nullptr) ares_destroy(channel_);
  }

  bool open(const resolver_config& config, std::uint16_t port) {
    static const bool initialised = ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS;
    ares_options options = options_for(config, port);
    options.sock_state_cb = dns_sockets::watch;
    options.sock_state_cb_data = &sockets_;
    if (!initialised || ares_init_options(&channel_, &options, options_given) != ARES_SUCCESS)
      return false;
    sockets_.attach(channel_);
    return set_servers(channel_, in_order(config), port);
  }

  // Starts the next round if the last one is over without an answer. Those that cannot even send
  // end here at once.
  void go_on() {
    while (!asking_ && !answered_) {
      if (rounds_left_ == 0) {
        answer_.kind = timed_out_ ? answer_kind::timed_out : answer_kind::server_failure;
        answered_ = true;
        return;
      }
      --rounds_left_;
      ask();
    }
  }

  void process(ares_socket_t readable, ares_socket_t writable) {
    ares_process_fd(channel_, readable, writable);
    go_on();
  }

  std::optional<duration> until_timeout() const {
    timeval left{};
    if (answered_ || ares_timeout(channel_, nullptr, &left) == nullptr) return std::nullopt;
    // A millisecond more, because c-ares rounds down and would have nothing to do yet.
    return std::chrono::seconds(left.tv_sec) + std::chrono::microseconds(left.tv_usec) +
           milliseconds(1);
  }

  std::optional<answer> take_answer() {
    if (!answered_ || taken_) return std::nullopt;
    taken_ = true;
    return std::move(answer_);
  }

  const dns_sockets& sockets() const { return sockets_; }

 private:
  void ask() {
    unsigned char* packet = nullptr;
    int size = 0;
    const int type = static_cast<int>(answer_.type);
    if (ares_create_query(name_.c_str(), class_in, type, random_id(), 1, &packet, &size,
                          payload_) == ARES_SUCCESS) {
      asking_ = true;
      ares_send(channel_, packet, size, round_over, this);
    }
    ares_free_string(packet);
  }

  // Called by c-ares from within ares_send(), ares_process_fd() or ares_destroy(): no exception may
  // leave.
  static void round_over(void* self, int status, int /*timeouts*/, unsigned char* packet,
                         int size) {
    auto& s = *static_cast<state*>(self);
    s.asking_ = false;
    if (status == ARES_EDESTRUCTION || status == ARES_ECANCELLED) return;
    if (status == ARES_ETIMEOUT) s.timed_out_ = true;
    if (status != ARES_SUCCESS || packet == nullptr || size < 0) return;
    try {
      s.answer_ = read_reply(s.answer_.type, {packet, static_cast<std::size_t>(size)});
      s.answered_ = true;
    } catch (...) {
      // No memory for the name: this round had no answer.
    }
  }

  std::string name_;
  int rounds_left_;
  int payload_;
  bool asking_ = false;
  bool timed_out_ = false;  // at least one nameserver stayed silent
  bool answered_ = false;
  bool taken_ = false;
  answer answer_;
  dns_sockets sockets_;
  ares_channel channel_ = nullptr;  // refers to sockets_; destroyed first
};

dns_query::dns_query() = default;
dns_query::~dns_query() = default;
dns_query::dns_query(dns_query&&) noexcept = default;
dns_query& dns_query::operator=(dns_query&&) noexcept = default;

result<dns_query> dns_query::start(const std::string& name, record_type type,
                                   const resolver_config& config, std::uint16_t port) {
  errno_saver keep;
  dns_query query;
  query.state_ = std::make_unique<state>(name, type, config);
  if (!query.state_->open(config, port)) return result<dns_query>::failure(ENOMEM);
  query.state_->go_on();
  return query;
}

bounded_vector<pollfd, max_query_fds> dns_query::poll_set() const {
  return state_->sockets().poll_set();
}

std::optional<duration> dns_query::until_timeout() const { return state_->until_timeout(); }

// An error is both: c-ares finds out which by reading and writing.
void dns_query::process(int fd, short revents) {
  errno_saver keep;
  if (!state_->sockets().knows(fd)) return;
  const bool error = (revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
  state_->process(error || (revents & POLLIN) != 0 ? fd : ARES_SOCKET_BAD,
                  error || (revents & POLLOUT) != 0 ? fd : ARES_SOCKET_BAD);
}

void dns_query::process_timeouts() {
  errno_saver keep;
  state_->process(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

std::optional<answer> dns_query::take_answer() { return state_->take_answer(); }

}  // namespace happy
