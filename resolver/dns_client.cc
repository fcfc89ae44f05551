#include "resolver/dns_client.h"

#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

#include "resolver/clock.h"
#include "resolver/dns_channel.h"
#include "resolver/dns_reply.h"
#include "resolver/nameserver_health.h"
#include "resolver/nameserver_turns.h"

namespace happy {
namespace {

constexpr int class_in = 1;

// RFC 4035 s3.2.3, in the second byte of the flags of RFC 1035 s4.1.1
constexpr int flags_low_at = 3;
constexpr unsigned char authentic_data = 0x20;

// RFC 5452 s9.2. c-ares 1.18 takes its identifiers from rand() where /dev/urandom is missing.
std::uint16_t random_id() {
  std::uint16_t id = 0;
  if (getrandom(&id, sizeof id, GRND_NONBLOCK) == sizeof id) return id;
  timespec now{};
  real->clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint16_t>(now.tv_nsec);
}

// What c-ares (1.22 on) says of a reply one of whose records it does not read, or would not write.
bool is_of_records(int status) { return status == ARES_EBADRESP || status == ARES_EBADNAME; }

// One nameserver asked once.
class exchange {
 public:
  enum class outcome : std::uint8_t { none, answered, failed, out_of_memory };

  // `packet` is the query. Null when there is no memory.
  static std::unique_ptr<exchange> open(std::size_t which, const endpoint& nameserver,
                                        const dns_channel::options& o, record_type type,
                                        query_reading reading) {
    std::unique_ptr<exchange> e(new exchange(which, type, reading));
    e->channel_ = dns_channel::open(nameserver, o);
    if (e->channel_ == nullptr) return nullptr;
    return e;
  }

  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;
  ~exchange() {
    if (channel_ != nullptr) channel_->sockets().begin_turn();
  }

  void send(const std::string& name, bool edns, bool trust_ad) {
    unsigned char* packet = nullptr;
    int size = 0;
    if (ares_create_query(name.c_str(), class_in, static_cast<int>(type_), random_id(), 1, &packet,
                          &size, edns ? dns_channel::edns_payload : 0) == ARES_SUCCESS) {
      if (trust_ad) packet[flags_low_at] |= authentic_data;
      ares_send(channel_->get(), packet, size, ended, this);
    } else {
      outcome_ = outcome::out_of_memory;
    }
    ares_free_string(packet);
  }

  void process(ares_socket_t readable, ares_socket_t writable) {
    channel_->sockets().begin_turn();
    ares_process_fd(channel_->get(), readable, writable);
  }

  std::optional<duration> until_timeout() const {
    timeval left{};
    if (ares_timeout(channel_->get(), nullptr, &left) == nullptr) return std::nullopt;
    // A millisecond more, because c-ares rounds down and would have nothing to do yet.
    return std::chrono::seconds(left.tv_sec) + std::chrono::microseconds(left.tv_usec) +
           milliseconds(1);
  }

  // For another query, if this one went as nearly all go.
  void keep_channel() {
    channel_->sockets().begin_turn();
    dns_channel::close(std::move(channel_));
  }

  outcome how() const { return outcome_; }
  answer& what() { return answer_; }
  std::size_t which() const { return which_; }
  dns_sockets& sockets() { return channel_->sockets(); }
  const dns_sockets& sockets() const { return channel_->sockets(); }

 private:
  exchange(std::size_t which, record_type type, query_reading reading)
      : which_(which), type_(type), reading_(reading) {}

  // Called by c-ares from within ares_send(), ares_process_fd() or ares_destroy(): no exception may
  // leave.
  static void ended(void* self, int status, int /*timeouts*/, unsigned char* packet, int size) {
    auto& e = *static_cast<exchange*>(self);
    if (status == ARES_EDESTRUCTION || status == ARES_ECANCELLED) return;
    e.outcome_ = status == ARES_ENOMEM ? outcome::out_of_memory : outcome::failed;
    // Silence is for nameserver_turns to notice, which knows when the round is over.
    if (status == ARES_ETIMEOUT) e.outcome_ = outcome::none;
    std::span<const std::uint8_t> reply = e.sockets().reply();
    const bool came = status == ARES_SUCCESS && packet != nullptr && size >= 0;
    if (came && reply.empty()) reply = {packet, static_cast<std::size_t>(size)};
    if (!came && (!is_of_records(status) || reply.empty())) return;
    try {
      e.answer_ = e.reading_ == query_reading::meaning ? read_reply(e.type_, reply)
                                                       : keep_reply(e.type_, reply);
      e.outcome_ =
          e.answer_.kind == answer_kind::server_failure ? outcome::failed : outcome::answered;
    } catch (...) {
      e.outcome_ = outcome::out_of_memory;
    }
  }

  std::size_t which_;
  record_type type_;
  query_reading reading_;
  outcome outcome_ = outcome::none;
  answer answer_;
  std::unique_ptr<dns_channel> channel_;  // calls ended() when it is destroyed: goes first
};

// A nameserver, and how it is asked.
struct way {
  endpoint nameserver;
  bool edns = false;
  std::uint64_t key = 0;  // in nameserver_health
  time_point asked = never;
};

using way_list = bounded_vector<way, max_nameservers>;

// All of them, in the order in which to ask: IPv6 first, silent ones last, and those that should
// understand EDNS once more without it.
way_list ways_to_ask(const resolver_config& config, std::uint16_t port, time_point now) {
  static constinit std::atomic<unsigned> queries{0};
  auto servers = config.nameservers;
  if (config.rotate) {
    // The two queries of a lookup start at the same nameserver.
    const unsigned first = queries.fetch_add(1, std::memory_order_relaxed) / 2;
    std::rotate(servers.begin(), servers.begin() + first % servers.size(), servers.end());
  }
  std::stable_partition(servers.begin(), servers.end(),
                        [](const address& a) { return a.family == family::ipv6; });
  way_list ways;
  for (const bool edns : {true, false}) {
    if (edns && !config.edns0) continue;
    for (const address& a : servers)
      ways.push_back({{a, port}, edns, nameserver_health::key_of(a, edns)});
  }
  std::stable_partition(ways.begin(), ways.end(),
                        [&](const way& w) { return !known_health().is_penalised(w.key, now); });
  return ways;
}

}  // namespace

class dns_query::state {
 public:
  state(const std::string& name, record_type type, const resolver_config& config,
        std::uint16_t port, query_reading reading, time_point now)
      : name_(name),
        reading_(reading),
        trust_ad_(config.trust_ad),
        use_tcp_(config.use_vc),
        round_(glibc_round(config)),
        ways_(ways_to_ask(config, port, now)),
        turns_({.nameservers = ways_.size(), .rounds = config.attempts, .round = round_}) {
    answer_.type = type;
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  // Takes in what the nameservers said and asks who is to be asked. What cannot even be sent ends here at
  // once.
  void go_on(time_point now) {
    collect(now);
    while (!answered_) {
      const nameserver_turns::action next = turns_.poll(now);
      switch (next.what) {
        case nameserver_turns::action::kind::wait: wait_until_ = next.until; return;
        case nameserver_turns::action::kind::forget: open_.clear(); break;
        case nameserver_turns::action::kind::ask: ask(next.which, now); break;
        case nameserver_turns::action::kind::over:
          answer_.kind = kind_of_failure();
          answered_ = true;
          return;
      }
      collect(now);
    }
  }

  // A descriptor that is none of ours is ignored.
  void process(int fd, bool readable, bool writable) {
    for (const auto& e : open_) {
      const ares_socket_t place = e->sockets().place_of(fd);
      if (place == ARES_SOCKET_BAD) continue;
      e->process(readable ? place : ARES_SOCKET_BAD, writable ? place : ARES_SOCKET_BAD);
    }
  }

  void process_timeouts() {
    for (const auto& e : open_) e->process(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  }

  std::optional<duration> until_timeout(time_point now) const {
    if (answered_) return std::nullopt;
    duration least = std::max(wait_until_ - now, duration::zero());
    for (const auto& e : open_) {
      if (const auto left = e->until_timeout()) least = std::min(least, *left);
    }
    return least;
  }

  bounded_vector<pollfd, max_query_fds> poll_set() const {
    bounded_vector<pollfd, max_query_fds> all;
    for (const auto& e : open_) {
      for (const pollfd& fd : e->sockets().poll_set()) all.push_back(fd);
    }
    return all;
  }

  bool hide() {
    hidden_ = true;
    return std::all_of(open_.begin(), open_.end(), [](auto& e) { return e->sockets().hide(); });
  }

  void close_sockets() {
    for (const auto& e : open_) e->sockets().close_all();
  }

  std::optional<answer> take_answer() {
    if (!answered_ || taken_) return std::nullopt;
    taken_ = true;
    return std::move(answer_);
  }

 private:
  void ask(std::size_t which, time_point now) {
    way& w = ways_[which];
    w.asked = now;
    ++asked_;
    auto e =
        exchange::open(which, w.nameserver, {w.edns, use_tcp_, round_}, answer_.type, reading_);
    if (e == nullptr) return give_up();
    if (hidden_) e->sockets().hide();
    open_.push_back(std::move(e));
    open_.back()->send(name_, w.edns, trust_ad_);
  }

  void collect(time_point now) {
    for (std::size_t i = 0; i < open_.size() && !answered_;) {
      exchange& e = *open_[i];
      switch (e.how()) {
        case exchange::outcome::none: ++i; break;
        case exchange::outcome::answered: take(e, now); break;
        case exchange::outcome::out_of_memory: give_up(); break;
        case exchange::outcome::failed:
          any_sent_ = any_sent_ || e.sockets().packets_sent() > 0;
          turns_.failed();
          answer_.refused = merge(answer_.refused, e.what().refused);
          open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
          break;
      }
    }
    if (answered_) open_.clear();
  }

  void take(exchange& e, time_point now) {
    answer_ = std::move(e.what());
    answered_ = true;
    known_health().answered(ways_[e.which()].key, now);
    for (const auto& other : open_) {
      const way& w = ways_[other->which()];
      if (now - w.asked >= overtake_after) known_health().overtaken(w.key, w.asked, now);
    }
    if (asked_ == 1) e.keep_channel();
  }

  // Where nothing could be sent (no descriptor left) libc may still have its way: it is asked.
  answer_kind kind_of_failure() const {
    if (turns_.was_silent()) return answer_kind::timed_out;
    return any_sent_ ? answer_kind::server_failure : answer_kind::not_sent;
  }

  // No memory: the nameservers are not to blame, and asking again would not help.
  void give_up() {
    answer_.kind = answer_kind::not_sent;
    answered_ = true;
  }

  std::string name_;
  query_reading reading_;
  bool trust_ad_;
  bool use_tcp_;
  duration round_;
  way_list ways_;
  nameserver_turns turns_;
  time_point wait_until_ = never;
  int asked_ = 0;
  bool hidden_ = false;
  bool any_sent_ = false;
  bool answered_ = false;
  bool taken_ = false;
  answer answer_;
  std::vector<std::unique_ptr<exchange>> open_;
};

dns_query::dns_query() = default;
dns_query::~dns_query() = default;
dns_query::dns_query(dns_query&&) noexcept = default;
dns_query& dns_query::operator=(dns_query&&) noexcept = default;

result<dns_query> dns_query::start(const std::string& name, record_type type,
                                   const resolver_config& config, std::uint16_t port,
                                   query_reading reading) {
  errno_saver keep;
  dns_query query;
  const time_point now = clock_now();
  query.state_ = std::make_unique<state>(name, type, config, port, reading, now);
  query.state_->go_on(now);
  return query;
}

bounded_vector<pollfd, max_query_fds> dns_query::poll_set() const { return state_->poll_set(); }

std::optional<duration> dns_query::until_timeout() const {
  return state_->until_timeout(clock_now());
}

bool dns_query::hide() {
  errno_saver keep;
  return state_->hide();
}

void dns_query::close_sockets() { state_->close_sockets(); }

// An error is both: c-ares finds out which by reading and writing.
void dns_query::process(int fd, short revents) {
  errno_saver keep;
  const bool error = (revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
  state_->process(fd, error || (revents & POLLIN) != 0, error || (revents & POLLOUT) != 0);
  state_->go_on(clock_now());
}

void dns_query::process_timeouts() {
  errno_saver keep;
  state_->process_timeouts();
  state_->go_on(clock_now());
}

std::optional<answer> dns_query::take_answer() { return state_->take_answer(); }

}  // namespace happy
