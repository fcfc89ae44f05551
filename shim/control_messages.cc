#include "shim/control_messages.h"

#include <linux/errqueue.h>
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace happy {
namespace {

// One message, without its header.
struct message {
  int level = 0;
  int type = 0;
  std::size_t size = 0;
  alignas(std::size_t) char data[most_control];
};

template <typename Value>
Value read(const message& m) {
  Value value{};
  std::memcpy(&value, m.data, std::min(sizeof value, m.size));
  return value;
}

template <typename Value>
void write(message& m, int level, int type, const Value& value) {
  m.level = level;
  m.type = type;
  m.size = sizeof value;
  std::memcpy(m.data, &value, sizeof value);
}

in_addr to_in_addr(const address& ipv4) {
  in_addr in{};
  std::memcpy(&in, ipv4.bytes.data(), sizeof in);
  return in;
}

// False: IP_PKTINFO tells it, for a datagram that came by IPv4.
bool translate_pktinfo(message& m, const address& own) {
  const auto shown = read<in6_pktinfo>(m);
  if (is_v4_mapped(from_in6_addr(shown.ipi6_addr))) return false;
  const in_addr here = to_in_addr(own);
  write(m, IPPROTO_IP, IP_PKTINFO, in_pktinfo{static_cast<int>(shown.ipi6_ifindex), here, here});
  return true;
}

bool translate_destination(message& m, const address& own) {
  const auto shown = read<sockaddr_in6>(m);
  if (is_v4_mapped(from_in6_addr(shown.sin6_addr))) return false;
  sockaddr_in view{};
  view.sin_family = AF_INET;
  view.sin_port = shown.sin6_port;
  view.sin_addr = to_in_addr(own);
  write(m, IPPROTO_IP, IP_ORIGDSTADDR, view);
  return true;
}

// RFC 7915 s4.2, read backwards.
void translate_icmp(sock_extended_err& error) {
  if (error.ee_origin != SO_EE_ORIGIN_ICMP6) return;
  error.ee_origin = SO_EE_ORIGIN_ICMP;
  const std::uint8_t code = error.ee_code;
  error.ee_code = 0;
  if (error.ee_type == ICMPV6_TIME_EXCEED) {
    error.ee_type = ICMP_TIME_EXCEEDED;
    error.ee_code = code;
  } else if (error.ee_type == ICMPV6_PKT_TOOBIG) {
    constexpr std::uint32_t header_difference = 20;
    error.ee_type = ICMP_DEST_UNREACH;
    error.ee_code = ICMP_FRAG_NEEDED;
    error.ee_info -= std::min(error.ee_info, header_difference);
  } else if (error.ee_type == ICMPV6_PARAMPROB) {
    error.ee_type = ICMP_PARAMETERPROB;
  } else {
    error.ee_type = ICMP_DEST_UNREACH;
    error.ee_code = code == ICMPV6_PORT_UNREACH     ? ICMP_PORT_UNREACH
                    : code == ICMPV6_ADM_PROHIBITED ? ICMP_HOST_ANO
                                                    : ICMP_HOST_UNREACH;
  }
}

struct ipv6_error {
  sock_extended_err error;
  sockaddr_in6 offender;
};
struct ipv4_error {
  sock_extended_err error;
  sockaddr_in offender;
};

bool translate_error(message& m, address_view view_of) {
  const auto shown = read<ipv6_error>(m);
  ipv4_error view{};
  view.error = shown.error;
  translate_icmp(view.error);
  if (shown.offender.sin6_family == AF_INET6) {
    view.offender.sin_family = AF_INET;
    view.offender.sin_addr = to_in_addr(view_of(from_in6_addr(shown.offender.sin6_addr)));
  }
  write(m, IPPROTO_IP, IP_RECVERR, view);
  return true;
}

// False: the program is not to see it.
bool translate(message& m, const address& own, address_view view_of) {
  if (m.level != IPPROTO_IPV6) return true;
  switch (m.type) {
    case IPV6_PKTINFO: return translate_pktinfo(m, own);
    case IPV6_ORIGDSTADDR: return translate_destination(m, own);
    case IPV6_RECVERR: return translate_error(m, view_of);
    case IPV6_HOPLIMIT: write(m, IPPROTO_IP, IP_TTL, read<int>(m)); return true;
    case IPV6_TCLASS:
      write(m, IPPROTO_IP, IP_TOS, static_cast<std::uint8_t>(read<int>(m)));
      return true;
    case IPV6_RECVFRAGSIZE: write(m, IPPROTO_IP, IP_RECVFRAGSIZE, read<int>(m)); return true;
    default: return true;
  }
}

// As the kernel's put_cmsg().
void put(const message& m, msghdr& to, std::size_t& used, std::size_t room) {
  const std::size_t left = room - used;
  if (to.msg_control == nullptr || left < sizeof(cmsghdr)) {
    to.msg_flags |= MSG_CTRUNC;
    return;
  }
  cmsghdr header{};
  header.cmsg_level = m.level;
  header.cmsg_type = m.type;
  header.cmsg_len = std::min<std::size_t>(CMSG_LEN(m.size), left);
  if (header.cmsg_len < CMSG_LEN(m.size)) to.msg_flags |= MSG_CTRUNC;
  char* at = static_cast<char*>(to.msg_control) + used;
  std::memcpy(at, &header, sizeof header);
  std::memcpy(at + sizeof header, m.data, header.cmsg_len - sizeof header);
  used += std::min<std::size_t>(CMSG_SPACE(m.size), left);
}

// The message at `at` of a buffer; where the next one is, or `size` at the end.
std::size_t take(const char* buffer, std::size_t size, std::size_t at, message& m) {
  cmsghdr header;
  m.size = 0;
  if (size - at < sizeof header) return size;
  std::memcpy(&header, buffer + at, sizeof header);
  if (header.cmsg_len < sizeof header || header.cmsg_len > size - at) return size;
  m.level = header.cmsg_level;
  m.type = header.cmsg_type;
  m.size = std::min<std::size_t>(header.cmsg_len - sizeof header, sizeof m.data);
  std::memcpy(m.data, buffer + at + sizeof header, m.size);
  return at + std::min<std::size_t>(CMSG_ALIGN(header.cmsg_len), size - at);
}

// False: nothing of it goes with an IPv6 packet.
bool translate_for_ipv6(message& m) {
  if (m.level != IPPROTO_IP) return true;
  const int number = m.size >= sizeof(int) ? read<int>(m) : read<std::uint8_t>(m);
  if (m.type == IP_TTL) return write(m, IPPROTO_IPV6, IPV6_HOPLIMIT, number), true;
  if (m.type == IP_TOS) return write(m, IPPROTO_IPV6, IPV6_TCLASS, number), true;
  if (m.type != IP_PKTINFO) return false;
  in6_pktinfo leaves{};
  leaves.ipi6_ifindex = static_cast<unsigned>(read<in_pktinfo>(m).ipi_ifindex);
  return write(m, IPPROTO_IPV6, IPV6_PKTINFO, leaves), true;
}

}  // namespace

void give_control(const msghdr& from, msghdr& to, const address* own, address_view view_of) {
  const auto* buffer = static_cast<const char*>(from.msg_control);
  const std::size_t room = to.msg_controllen;
  const std::size_t size = buffer == nullptr ? 0 : from.msg_controllen;
  std::size_t used = 0;
  to.msg_flags = from.msg_flags;
  message m;
  for (std::size_t at = 0; at < size;) {
    at = take(buffer, size, at, m);
    if (m.size != 0 && (own == nullptr || translate(m, *own, view_of))) put(m, to, used, room);
  }
  to.msg_controllen = used;
}

std::size_t control_for_ipv6(const msghdr& from, char* buffer, std::size_t size) {
  const auto* given = static_cast<const char*>(from.msg_control);
  const std::size_t length = given == nullptr ? 0 : from.msg_controllen;
  msghdr out{};
  out.msg_control = buffer;
  std::size_t used = 0;
  message m;
  for (std::size_t at = 0; at < length;) {
    at = take(given, length, at, m);
    if (m.size != 0 && translate_for_ipv6(m) && CMSG_SPACE(m.size) <= size - used)
      put(m, out, used, size);
  }
  return used;
}

}  // namespace happy
