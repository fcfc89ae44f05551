// The options of IPv4 packets, and what does the same for IPv6 ones: for attempts of another family than the program's
// socket, and for sockets that the program takes for IPv4 ones (translated.h).
#pragma once

#include <netinet/in.h>

#include <iterator>

namespace happy {

struct ip_option {
  int ipv4;                // at level IPPROTO_IP
  int ipv6;                // at level IPPROTO_IPV6; 0: there is none
  bool datagrams = false;  // it means nothing to TCP
};

// An AF_INET6 socket has both: what is set of IPv4's is what it shows when asked for it, and what goes for packets to
// mapped addresses. Left out: multicast (no NAT64 translates it), and what a socket has once for both families
// (IP_TRANSPARENT, IP_FREEBIND, IP_BIND_ADDRESS_NO_PORT).
inline constexpr ip_option ip_options[] = {
    {IP_TOS, IPV6_TCLASS},
    {IP_TTL, IPV6_UNICAST_HOPS},
    {IP_MTU_DISCOVER, IPV6_MTU_DISCOVER},
    {IP_MINTTL, IPV6_MINHOPCOUNT},
    {IP_RECVERR, IPV6_RECVERR},
    {IP_RECVTOS, IPV6_RECVTCLASS, true},
    {IP_RECVTTL, IPV6_RECVHOPLIMIT, true},
    {IP_PKTINFO, IPV6_RECVPKTINFO, true},
    {IP_RECVORIGDSTADDR, IPV6_RECVORIGDSTADDR, true},
    {IP_RECVFRAGSIZE, IPV6_RECVFRAGSIZE, true},
    {IP_RECVERR_RFC4884, IPV6_RECVERR_RFC4884, true},
    {IP_RECVOPTS, 0, true},
    {IP_RETOPTS, 0, true},
    {IP_PASSSEC, 0, true},
    {IP_CHECKSUM, 0, true},
};

constexpr bool is_datagram_option(int ipv4_option) {
  for (const ip_option& o : ip_options) {
    if (o.ipv4 == ipv4_option) return o.datagrams;
  }
  return false;
}

// 0: IPv6 has no such option.
constexpr int ipv6_option(int ipv4_option) {
  for (const ip_option& o : ip_options) {
    if (o.ipv4 == ipv4_option) return o.ipv6;
  }
  return 0;
}

}  // namespace happy
