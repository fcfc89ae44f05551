"""AI_V4MAPPED: programs that take IPv6 addresses alone, and IPv4 ones as ::ffff:a.b.c.d."""

from cases import LIGHT, case, check, check_between, check_equal, families, report

PROGRAM = """
import socket, sys, time
began = time.monotonic()
found = socket.getaddrinfo(sys.argv[1], 7, socket.AF_INET6, socket.SOCK_STREAM, 0, int(sys.argv[2]))
print("ms", 1000 * (time.monotonic() - began))
print("addresses", ",".join(entry[4][0] for entry in found))
s = socket.socket(socket.AF_INET6)
s.connect(found[0][4])
s.send(b"x"), s.recv(1)
print("peer", s.getpeername()[0])
"""
V4MAPPED, ALL = 8, 16


def _connect(network, host, flags):
    run = network.run(["/usr/bin/python3", "-IS", "-c", PROGRAM, host.name, flags], happy=True)
    return report(run)


def _mapped(host):
    return [f"::ffff:{address}" for address in host.ipv4]


@case("aaaa-silent")
def mapped_without_ipv6(network):
    """A silent AAAA costs the Resolution Delay, where libc waits for its end."""
    host = network.host("silent")
    seen = _connect(network, host, V4MAPPED)
    check_equal((seen.get("addresses"), seen.get("peer")), (_mapped(host)[0], _mapped(host)[0]), "addresses and peer")
    check_between(float(seen["ms"]), 45, 1000, "ms of the lookup")


@case(load=LIGHT)
def mapped_beside_ipv6(network):
    """IPv4 addresses that only stand in are left out where there are others; with AI_ALL both are given."""
    host = network.host("both")
    check_equal(_connect(network, host, V4MAPPED).get("addresses"), ",".join(host.ipv6), "addresses")
    check_equal(_connect(network, host, V4MAPPED | ALL).get("addresses"), ",".join(host.ipv6 + _mapped(host)),
                "addresses with AI_ALL")


@case("v6-drop")
def mapped_race(network):
    """All of them are raced, and the program goes on seeing IPv6 addresses; without AI_ALL it has asked for no IPv4."""
    host = network.host("both")
    seen = _connect(network, host, V4MAPPED | ALL)
    check_equal(seen.get("peer"), _mapped(host)[0], "peer")
    check_equal(families(network.syns(host)), "64", "SYNs")
    alone = network.host("alone")
    network.run(["/usr/bin/python3", "-IS", "-c", PROGRAM, alone.name, V4MAPPED], happy=True, seconds=2)
    check(set(families(network.syns(alone))) == {"6"}, "an IPv4 address was tried")
