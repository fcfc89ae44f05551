// tundelay: a wire with delay and loss between two TUN devices.
//
//   tundelay NEAR FAR PREFIX=ONE_WAY_MS[,LOSS_PERCENT] ...
//
// Every packet read from one device is held for its delay and then written to the other. The rule with
// the longest prefix that contains the packet's source or destination applies; without a rule a packet
// passes at once. Each TCP SYN is reported on stdout, one JSON line written before the packet goes on,
// with the time at which it came in (CLOCK_MONOTONIC, as the lab's servers use). So is each moment at which
// the machine stood still: when this process, which sleeps a heartbeat at most, did not get the processor back in time.
//
// The kernel's own netem would do this; the kernels this lab runs on often come without it.

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <queue>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;
using packet_bytes = std::vector<unsigned char>;
using address = std::array<unsigned char, 16>;  // IPv4 in the first four bytes

constexpr std::size_t max_packet = 65536;  // what a TUN device can hand over at once
constexpr std::size_t max_held = 65536;    // a full queue drops, as a router's does
constexpr steady::duration heartbeat = std::chrono::milliseconds{20};
constexpr steady::duration standstill = std::chrono::milliseconds{40};

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "tundelay: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

struct rule {
  int family;
  address prefix;
  unsigned length;
  steady::duration delay;
  double loss_percent;
};

struct headers {
  int family;
  address source;
  address destination;
  std::optional<std::pair<unsigned, unsigned>> syn_ports;  // source, destination, of a TCP SYN
};

struct held_packet {
  steady::time_point due;
  std::uint64_t order;  // packets with equal deadlines keep their order
  int target_fd;
  packet_bytes bytes;

  bool operator<(const held_packet& other) const {
    return std::pair{due, order} >
           std::pair{other.due, other.order};  // earliest on top of the heap
  }
};

double number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    errno = EINVAL;
    die(std::string{text});
  }
  return value;
}

rule parse_rule(const std::string& text) {
  const auto slash = text.find('/');
  const auto equals = text.find('=', slash);
  if (slash == std::string::npos || equals == std::string::npos) {
    errno = EINVAL;
    die(text);
  }
  const auto comma = std::min(text.find(',', equals), text.size());
  rule parsed{};
  parsed.family = text.find(':') < slash ? AF_INET6 : AF_INET;
  if (inet_pton(parsed.family, text.substr(0, slash).c_str(), parsed.prefix.data()) != 1) {
    errno = EINVAL;
    die(text);
  }
  parsed.length = static_cast<unsigned>(number(text.substr(slash + 1, equals - slash - 1)));
  parsed.delay =
      std::chrono::duration_cast<steady::duration>(std::chrono::duration<double, std::milli>{
          number(text.substr(equals + 1, comma - equals - 1))});
  if (comma < text.size()) parsed.loss_percent = number(text.substr(comma + 1));
  return parsed;
}

timespec to_timespec(steady::duration d) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d);
  return {seconds.count(), std::chrono::nanoseconds{d - seconds}.count()};
}

bool contains(const rule& candidate, const address& value) {
  for (unsigned bit = 0; bit < candidate.length; ++bit) {
    const unsigned mask = 0x80u >> (bit % 8);
    if ((candidate.prefix[bit / 8] ^ value[bit / 8]) & mask) return false;
  }
  return true;
}

const rule* rule_for(const std::vector<rule>& rules, const headers& of) {
  const rule* best = nullptr;
  for (const auto& candidate : rules) {
    if (candidate.family != of.family) continue;
    if (best && best->length >= candidate.length) continue;
    if (contains(candidate, of.source) || contains(candidate, of.destination)) best = &candidate;
  }
  return best;
}

unsigned big_endian_16(std::span<const unsigned char> bytes) { return bytes[0] * 256u + bytes[1]; }

std::optional<std::pair<unsigned, unsigned>> syn_ports(std::span<const unsigned char> tcp) {
  constexpr unsigned syn = 0x02, ack = 0x10;
  if (tcp.size() < 20 || (tcp[13] & (syn | ack)) != syn) return std::nullopt;
  return std::pair{big_endian_16(tcp), big_endian_16(tcp.subspan(2))};
}

// Extension headers and fragments are not looked into: no SYN of a lab has them.
std::optional<headers> parse_headers(std::span<const unsigned char> packet) {
  headers parsed{};
  std::size_t header_length = 40, address_length = 16, source_at = 8, protocol_at = 6;
  parsed.family = AF_INET6;
  if (packet.empty()) return std::nullopt;
  if (packet[0] >> 4 == 4) {
    header_length = (packet[0] & 15u) * 4u;
    address_length = 4, source_at = 12, protocol_at = 9;
    parsed.family = AF_INET;
  }
  if (header_length < 20 || packet.size() < header_length) return std::nullopt;
  std::memcpy(parsed.source.data(), &packet[source_at], address_length);
  std::memcpy(parsed.destination.data(), &packet[source_at + address_length], address_length);
  if (packet[protocol_at] == IPPROTO_TCP)
    parsed.syn_ports = syn_ports(packet.subspan(header_length));
  return parsed;
}

double to_ms(steady::duration d) { return std::chrono::duration<double, std::milli>{d}.count(); }

void report_standstill(steady::time_point now, steady::duration late) {
  std::printf("{\"event\": \"standstill\", \"time_ms\": %.3f, \"ms\": %.0f}\n",
              to_ms(now.time_since_epoch()), to_ms(late));
  std::fflush(stdout);
}

void report_syn(const headers& of, steady::time_point now) {
  char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN];
  inet_ntop(of.family, of.source.data(), source, sizeof source);
  inet_ntop(of.family, of.destination.data(), destination, sizeof destination);
  const double time_ms = to_ms(now.time_since_epoch());
  std::printf(
      "{\"event\": \"syn\", \"time_ms\": %.3f, \"source\": \"%s\", \"source_port\": %u, "
      "\"address\": \"%s\", \"port\": %u}\n",
      time_ms, source, of.syn_ports->first, destination, of.syn_ports->second);
  std::fflush(stdout);  // one write(2): the lab's servers share the pipe
}

int open_tun(const char* name) {
  const int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) die("/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (ioctl(fd, TUNSETIFF, &request) < 0) die(name);
  return fd;
}

class wire {
 public:
  wire(int near_fd, int far_fd, std::vector<rule> rules)
      : fds_{near_fd, far_fd}, rules_{std::move(rules)} {}

  [[noreturn]] void run() {
    for (;;) {
      std::array<pollfd, 2> polled{{{fds_[0], POLLIN, 0}, {fds_[1], POLLIN, 0}}};
      const auto asleep_until = steady::now() + time_to_next();
      const timespec timeout = to_timespec(time_to_next());
      if (ppoll(polled.data(), polled.size(), &timeout, nullptr) < 0) die("ppoll");
      const auto now = steady::now();
      if (now - asleep_until > standstill) report_standstill(now, now - asleep_until);
      if (polled[0].revents) take_in(fds_[0], fds_[1]);
      if (polled[1].revents) take_in(fds_[1], fds_[0]);
      let_out();
    }
  }

 private:
  steady::duration time_to_next() const {
    if (held_.empty()) return heartbeat;
    return std::clamp(held_.top().due - steady::now(), steady::duration::zero(), heartbeat);
  }

  void take_in(int source_fd, int target_fd) {
    ssize_t length;
    while ((length = read(source_fd, buffer_.data(), buffer_.size())) > 0) {
      const std::span packet{buffer_.data(), static_cast<std::size_t>(length)};
      const auto parsed = parse_headers(packet);
      if (!parsed) continue;
      const auto now = steady::now();
      if (parsed->syn_ports) report_syn(*parsed, now);
      const rule* applied = rule_for(rules_, *parsed);
      if (applied && percent_(random_) < applied->loss_percent) continue;
      if (held_.size() == max_held) continue;
      const auto delay = applied ? applied->delay : steady::duration::zero();
      held_.push({now + delay, order_++, target_fd, packet_bytes(packet.begin(), packet.end())});
    }
  }

  void let_out() {
    while (!held_.empty() && held_.top().due <= steady::now()) {
      const auto& packet = held_.top();
      // A device that refuses a packet has lost it, as a wire would.
      [[maybe_unused]] const auto ignored =
          write(packet.target_fd, packet.bytes.data(), packet.bytes.size());
      held_.pop();
    }
  }

  std::array<int, 2> fds_;
  std::vector<rule> rules_;
  std::priority_queue<held_packet> held_;
  std::uint64_t order_ = 0;
  packet_bytes buffer_ = packet_bytes(max_packet);
  std::mt19937 random_{1};  // fixed seed: the same run loses the same packets
  std::uniform_real_distribution<double> percent_{0, 100};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: tundelay NEAR FAR PREFIX=ONE_WAY_MS[,LOSS_PERCENT] ...\n");
    return 2;
  }
  std::vector<rule> rules;
  for (int i = 3; i < argc; ++i) rules.push_back(parse_rule(argv[i]));
  wire delayed{open_tun(argv[1]), open_tun(argv[2]), std::move(rules)};
  std::puts("{\"event\": \"ready\", \"who\": \"tundelay\"}");
  std::fflush(stdout);
  delayed.run();
}
