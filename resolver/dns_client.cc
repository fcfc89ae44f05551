#include "resolver/dns_client.h"

#include <sys/random.h>

#include "resolver/dns_channel.h"
#include "resolver/dns_reply.h"

namespace happy {
namespace {

constexpr int class_in = 1;

// RFC 5452 s9.2. c-ares 1.18 takes its identifiers from rand() where /dev/urandom is missing.
std::uint16_t random_id() {
  std::uint16_t id = 0;
  if (getrandom(&id, sizeof id, GRND_NONBLOCK) == sizeof id) return id;
  timespec now{};
  real->clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint16_t>(now.tv_nsec);
}

}  // namespace

class dns_query::state {
 public:
  state(const std::string& name, record_type type, const resolver_config& config)
      : name_(name),
        rounds_left_(config.attempts),
        payload_(config.edns0 ? dns_channel::edns_payload : 0) {
    answer_.type = type;
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    if (channel_ == nullptr) return;
    channel_->sockets().begin_turn();
    if (answered_) dns_channel::close(std::move(channel_));
  }

  bool open(const resolver_config& config, std::uint16_t port) {
    channel_ = dns_channel::open(config, port);
    return channel_ != nullptr;
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
    channel_->sockets().begin_turn();
    ares_process_fd(channel_->get(), readable, writable);
    go_on();
  }

  std::optional<duration> until_timeout() const {
    timeval left{};
    if (answered_ || ares_timeout(channel_->get(), nullptr, &left) == nullptr) return std::nullopt;
    // A millisecond more, because c-ares rounds down and would have nothing to do yet.
    return std::chrono::seconds(left.tv_sec) + std::chrono::microseconds(left.tv_usec) +
           milliseconds(1);
  }

  std::optional<answer> take_answer() {
    if (!answered_ || taken_) return std::nullopt;
    taken_ = true;
    return std::move(answer_);
  }

  dns_sockets& sockets() { return channel_->sockets(); }

 private:
  void ask() {
    unsigned char* packet = nullptr;
    int size = 0;
    const int type = static_cast<int>(answer_.type);
    if (ares_create_query(name_.c_str(), class_in, type, random_id(), 1, &packet, &size,
                          payload_) == ARES_SUCCESS) {
      asking_ = true;
      ares_send(channel_->get(), packet, size, round_over, this);
    } else {
      give_up();
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
    if (status == ARES_ENOMEM) return s.give_up();
    if (status == ARES_ETIMEOUT) s.timed_out_ = true;
    if (status != ARES_SUCCESS || packet == nullptr || size < 0) return;
    try {
      s.answer_ = read_reply(s.answer_.type, {packet, static_cast<std::size_t>(size)});
      s.answered_ = true;
    } catch (...) {
      s.give_up();
    }
  }

  // No memory: the nameservers are not to blame, and asking again would not help.
  void give_up() {
    answer_.kind = answer_kind::not_sent;
    answered_ = true;
  }

  std::string name_;
  int rounds_left_;
  int payload_;
  bool asking_ = false;
  bool timed_out_ = false;  // at least one nameserver stayed silent
  bool answered_ = false;
  bool taken_ = false;
  answer answer_;
  std::unique_ptr<dns_channel> channel_;  // calls round_over() when it is destroyed: goes first
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

bool dns_query::hide() {
  errno_saver keep;
  return state_->sockets().hide();
}

void dns_query::close_sockets() { state_->sockets().close_all(); }

// An error is both: c-ares finds out which by reading and writing.
void dns_query::process(int fd, short revents) {
  errno_saver keep;
  const ares_socket_t place = state_->sockets().place_of(fd);
  if (place == ARES_SOCKET_BAD) return;
  const bool error = (revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
  state_->process(error || (revents & POLLIN) != 0 ? place : ARES_SOCKET_BAD,
                  error || (revents & POLLOUT) != 0 ? place : ARES_SOCKET_BAD);
}

void dns_query::process_timeouts() {
  errno_saver keep;
  state_->process(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

std::optional<answer> dns_query::take_answer() { return state_->take_answer(); }

}  // namespace happy
