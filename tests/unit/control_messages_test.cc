#include "shim/control_messages.h"

#include <netinet/in.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/catch.h"

namespace {

using namespace happy;

constexpr address own = make_ipv4(192, 0, 0, 1);
address view(const address&) { return make_ipv4(198, 51, 100, 1); }

struct messages {
  alignas(cmsghdr) char buffer[most_control]{};
  std::size_t used = 0;

  template <typename Value>
  void add(int level, int type, const Value& value) {
    cmsghdr header{};
    header.cmsg_len = CMSG_LEN(sizeof value);
    header.cmsg_level = level;
    header.cmsg_type = type;
    std::memcpy(buffer + used, &header, sizeof header);
    std::memcpy(buffer + used + sizeof header, &value, sizeof value);
    used += CMSG_SPACE(sizeof value);
  }

  msghdr header() {
    msghdr m{};
    m.msg_control = buffer;
    m.msg_controllen = used;
    return m;
  }
};

// (level, type, bytes of data) of each.
std::vector<std::tuple<int, int, std::size_t>> list(msghdr& m) {
  std::vector<std::tuple<int, int, std::size_t>> found;
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c))
    found.emplace_back(c->cmsg_level, c->cmsg_type, c->cmsg_len - CMSG_LEN(0));
  return found;
}

messages from_kernel() {
  messages all;
  all.add(SOL_SOCKET, SO_TIMESTAMP, timeval{1, 2});
  all.add(IPPROTO_IPV6, IPV6_PKTINFO, in6_pktinfo{in6addr_loopback, 7});
  all.add(IPPROTO_IPV6, IPV6_HOPLIMIT, 61);
  all.add(IPPROTO_IPV6, IPV6_TCLASS, 0x2e << 2);
  return all;
}

}  // namespace

TEST_CASE("control messages: IPv6's become IPv4's, others stay", "[control]") {
  messages kernel = from_kernel();
  messages room;
  msghdr given = kernel.header();
  msghdr program = room.header();
  program.msg_controllen = sizeof room.buffer;
  give_control(given, program, &own, view);
  CHECK(program.msg_flags == 0);
  CHECK(list(program) ==
        std::vector<std::tuple<int, int, std::size_t>>{{SOL_SOCKET, SO_TIMESTAMP, sizeof(timeval)},
                                                       {IPPROTO_IP, IP_PKTINFO, sizeof(in_pktinfo)},
                                                       {IPPROTO_IP, IP_TTL, sizeof(int)},
                                                       {IPPROTO_IP, IP_TOS, 1}});
  in_pktinfo told{};
  std::memcpy(&told, room.buffer + CMSG_SPACE(sizeof(timeval)) + sizeof(cmsghdr), sizeof told);
  CHECK(told.ipi_ifindex == 7);
  CHECK(ntohl(told.ipi_addr.s_addr) == 0xc0000001);
}

TEST_CASE("control messages: whatever room there is, none is used beyond it", "[control]") {
  messages kernel = from_kernel();
  for (std::size_t room = 0; room <= kernel.used; ++room) {
    INFO(room);
    std::vector<char> buffer(room + 16, '\x5a');
    msghdr given = kernel.header();
    msghdr program{};
    program.msg_control = buffer.data();
    program.msg_controllen = room;
    give_control(given, program, &own, view);
    CHECK(program.msg_controllen <= room);
    CHECK(std::string(buffer.data() + room, 16) == std::string(16, '\x5a'));
    const std::size_t wanted = CMSG_SPACE(sizeof(timeval)) + CMSG_SPACE(sizeof(in_pktinfo)) +
                               CMSG_SPACE(sizeof(int)) + CMSG_LEN(1);
    CHECK(((program.msg_flags & MSG_CTRUNC) != 0) == (room < wanted));
  }
}

TEST_CASE("control messages: what a native datagram brings twice is told once", "[control]") {
  messages kernel;
  in6_pktinfo shown{};
  const address native = mapped(make_ipv4(10, 9, 9, 2));
  std::memcpy(&shown.ipi6_addr, native.bytes.data(), sizeof shown.ipi6_addr);
  kernel.add(IPPROTO_IPV6, IPV6_PKTINFO, shown);
  kernel.add(IPPROTO_IP, IP_PKTINFO, in_pktinfo{});
  messages room;
  msghdr given = kernel.header();
  msghdr program = room.header();
  program.msg_controllen = sizeof room.buffer;
  give_control(given, program, &own, view);
  CHECK(list(program).size() == 1);
}

TEST_CASE("control messages: what goes with a datagram by IPv6", "[control]") {
  messages program;
  program.add(IPPROTO_IP, IP_TTL, 9);
  program.add(IPPROTO_IP, IP_TOS, static_cast<std::uint8_t>(16));
  program.add(IPPROTO_IP, IP_PKTINFO, in_pktinfo{3, {}, {}});
  program.add(IPPROTO_IP, IP_RETOPTS, 0);
  program.add(SOL_SOCKET, SO_MARK, 5);
  messages out;
  msghdr m = out.header();
  m.msg_controllen = control_for_ipv6(program.header(), out.buffer, sizeof out.buffer);
  CHECK(list(m) == std::vector<std::tuple<int, int, std::size_t>>{
                       {IPPROTO_IPV6, IPV6_HOPLIMIT, sizeof(int)},
                       {IPPROTO_IPV6, IPV6_TCLASS, sizeof(int)},
                       {IPPROTO_IPV6, IPV6_PKTINFO, sizeof(in6_pktinfo)},
                       {SOL_SOCKET, SO_MARK, sizeof(int)}});
}

TEST_CASE("control messages: lengths that lie are not followed", "[control]") {
  for (const std::size_t lie :
       {std::size_t{0}, std::size_t{15}, std::size_t{1000}, ~std::size_t{0}}) {
    messages program;
    program.add(IPPROTO_IP, IP_TTL, 9);
    std::memcpy(program.buffer, &lie, sizeof lie);
    messages out;
    CHECK(control_for_ipv6(program.header(), out.buffer, sizeof out.buffer) == 0);
  }
}
