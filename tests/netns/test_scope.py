"""Nothing is connected to that is more private than what the program named.

The documentation ranges are not globally reachable, so these names have addresses that are, on the Internet; inside the
lab they lead to the lab's server like any other.
"""

import lab
import topology
from cases import case, check, check_connected, check_equal, victim

GLOBAL_V6, GLOBAL_V4 = "2600:1234::1", "8.1.2.3"
WAIT_MS = 1000  # four Connection Attempt Delays
BOTH_FAMILIES = "aaaa-late=20"  # IPv6 last: the lookup then has both for the program to choose from


def serve_in_client(network):
    """Starts the fake services in the client too, where a wrongly chosen loopback would lead."""
    network.start_daemon("c", lab.PYTHON, "-IS", lab.HERE / "tcp_server.py", "c")
    network.wait_ready()


def check_left_alone(network, named, private):
    """The program names the dead global address of a name that also has a private one, where a server waits."""
    host = network.host("mixed", addresses=[named, private])
    control = network.run(victim("walk", "-o", private, host.name, 7))
    check_equal(control.status, 0, f"{private} answers when it is meant: {control.output!r}")
    before = len(network.accepts(host))
    run = network.run(victim("walk", "-s", WAIT_MS, "-o", named, host.name, 7), happy=True)
    check_equal(run.output, f"{named} EINPROGRESS\n", "output")
    check_equal(len(network.accepts(host)), before, f"connections to {private}")
    check(len([syn for syn in network.syns(host) if syn["address"] == named]) >= 1, "nothing was sent at all")


@case("v6-drop")
def no_race_to_ipv4_loopback(network):
    """127.0.0.1."""
    serve_in_client(network)
    check_left_alone(network, GLOBAL_V6, "127.0.0.1")


@case("v4-drop", BOTH_FAMILIES)
def no_race_to_ipv6_loopback(network):
    """::1."""
    serve_in_client(network)
    check_left_alone(network, GLOBAL_V4, "::1")


@case("v6-drop")
def no_race_to_own_ipv4(network):
    """An address of this host counts as its loopback."""
    serve_in_client(network)
    check_left_alone(network, GLOBAL_V6, topology.OWN_V4)


@case("v4-drop", BOTH_FAMILIES)
def no_race_to_own_ipv6(network):
    """Likewise."""
    serve_in_client(network)
    check_left_alone(network, GLOBAL_V4, topology.OWN_V6)


@case("v6-drop")
def no_race_to_private_ipv4(network):
    """RFC 1918."""
    check_left_alone(network, GLOBAL_V6, "10.1.2.3")
    check_left_alone(network, GLOBAL_V6, "192.168.1.2")


@case("v4-drop", BOTH_FAMILIES)
def no_race_to_ula(network):
    """RFC 4193."""
    check_left_alone(network, GLOBAL_V4, "fd00:1234::1")


@case("v6-drop")
def global_to_global_races(network):
    """The control: the same program is helped where both addresses are global."""
    host = network.host("global", addresses=[GLOBAL_V6, GLOBAL_V4])
    run = network.run(victim("walk", "-s", WAIT_MS, "-o", GLOBAL_V6, host.name, 7), happy=True)
    check_connected(network, host, run, "4", 0.7)


@case("v6-drop")
def private_to_private_races(network):
    """So is one that named a private address of a name with private ones only."""
    host = network.host("private", addresses=["fd00:1234::1", "10.1.2.3"])
    run = network.run(victim("walk", "-s", WAIT_MS, "-o", "fd00:1234::1", host.name, 7), happy=True)
    check_connected(network, host, run, "4", 0.7)
