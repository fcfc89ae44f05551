"""Sends one router advertisement with PREF64 options (radvd of Debian 12 knows none).

    advertise.py INTERFACE[%SOURCE] PREFIX=LIFETIME ...

The lifetime is in seconds; 0 withdraws. With a link-local address of the interface as its source it comes from one of
several routers. Written from RFC 4861 s4.2 and RFC 8781 s4.
"""

import ipaddress
import socket
import struct
import sys

TYPE_ADVERTISEMENT, TYPE_PREF64 = 134, 38
LENGTH_CODES = {96: 0, 64: 1, 56: 2, 48: 3, 40: 4, 32: 5}
IPV6_MULTICAST_HOPS, IPV6_MULTICAST_IF = 18, 17


def option(text):
    """The PREF64 option for "PREFIX=LIFETIME"."""
    prefix, lifetime = text.split("=")
    network = ipaddress.IPv6Network(prefix)
    word = int(lifetime) // 8 << 3 | LENGTH_CODES[network.prefixlen]
    return struct.pack("!BBH", TYPE_PREF64, 2, word) + network.network_address.packed[:12]


def main():
    """Sends it to all nodes of the link."""
    interface, _, source = sys.argv[1].partition("%")
    index = socket.if_nametoindex(interface)
    sender = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    sender.setsockopt(socket.IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 255)
    sender.setsockopt(socket.IPPROTO_IPV6, IPV6_MULTICAST_IF, index)
    if source:
        sender.bind((source, 0, 0, index))
    # Hop limit 64, no flags, no default router, no timers: prefixes and routes of the lab stay as they are.
    message = struct.pack("!BBHBBHII", TYPE_ADVERTISEMENT, 0, 0, 64, 0, 0, 0, 0)
    sender.sendto(message + b"".join(map(option, sys.argv[2:])), ("ff02::1", 0, 0, index))


if __name__ == "__main__":
    main()
