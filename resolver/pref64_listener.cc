#include "resolver/pref64_listener.h"

#include <linux/netlink.h>

#include <array>

#include "resolver/clock.h"
#include "resolver/netlink/advertised_option.h"
#include "resolver/pref64_option.h"
#include "resolver/trace.h"
#include "shim/base/raw_syscall.h"

namespace happy {
namespace {

// Enough for the option, of 16 bytes, and for the beginning of what is said of a link: the rest of longer messages is
// not wanted.
constexpr std::size_t max_message = 256;

// Messages in one turn; a network that says more is heard on in the next.
constexpr int max_turn = 64;

// Left to itself the kernel would give this socket the process's number as its port, which programs with netlink
// sockets of their own want for theirs.
constexpr int port_tries = 4;
constexpr std::uint32_t not_a_process = 0x80000000U;

bool bind_out_of_the_way(int fd) {
  const auto seed = static_cast<std::uint32_t>(clock_now().time_since_epoch().count());
  for (std::uint32_t i = 0; i < port_tries; ++i) {
    sockaddr_nl own{};
    own.nl_family = AF_NETLINK;
    own.nl_pid = not_a_process | (seed + i * 0x9e3779b9U);
    own.nl_groups = 1U << (RTNLGRP_ND_USEROPT - 1) | 1U << (RTNLGRP_LINK - 1);
    if (real->bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0) return true;
    if (errno != EADDRINUSE) return false;
  }
  return false;
}

void trace_advertised(const advertiser& who, const pref64_option& option) {
  if (!trace_on()) return;
  json_line line = trace_line("pref64", 0);
  line.text("source", "router").text("prefix", to_text(option.prefix).chars);
  line.number("lifetime_s", option.lifetime.count()).number("interface", who.interface);
  emit(line);
}

void take(std::span<const std::uint8_t> message, prefix_table& table, time_point now) {
  happy_netlink_option told{};
  if (!parse_advertised(message, told)) return;
  if (told.size == 0) return table.lose_link(told.interface);
  const auto option = parse_pref64({told.data, told.size});
  if (!option) return;
  advertiser who{.interface = told.interface};
  std::copy_n(told.router, sizeof told.router, who.router.bytes.begin());
  table.advertise(who, option->prefix, option->lifetime, now);
  trace_advertised(who, *option);
}

}  // namespace

bool pref64_listener::open() {
  errno_saver keep;
  result<guarded_socket> made = guarded_socket::adopt(
      real->socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!made.ok() || !bind_out_of_the_way(made.value().get())) return false;
  socket_ = std::move(made.value());
  return true;
}

void pref64_listener::hear(prefix_table& table, time_point now) {
  if (!is_open()) return;
  errno_saver keep;
  if (!socket_.is_ours()) return close();
  std::array<std::uint8_t, max_message> buffer;
  for (int i = 0; i < max_turn; ++i) {
    sockaddr_nl from{};
    socklen_t length = sizeof from;
    const ssize_t size = real->recvfrom(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT,
                                        reinterpret_cast<sockaddr*>(&from), &length);
    if (size < 0 && errno != ENOBUFS) return;
    // Any process that may could send one to this socket; the kernel's own number is 0.
    if (size > 0 && from.nl_pid == 0)
      take({buffer.data(), static_cast<std::size_t>(size)}, table, now);
  }
}

}  // namespace happy
