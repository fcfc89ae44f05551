"""IPv4 by way of a NAT64, on networks that have only IPv6."""

import json

import nat64
import topology
from cases import case, check, check_between, check_equal, report, victim
from topology import LabError

V6_NAMESERVER = topology.NAMESERVERS[1:]
CONFIGURED = {"HAPPY_PREF64": nat64.PREFIX}
WITHIN_S = 0.7


def check_reached(network, host, run, within_s=WITHIN_S):
    """The program's data came to the IPv4 server, in time."""
    def new():
        return [accept for accept in network.find("accept", address=host.ipv4[0])
                if accept["time_ms"] >= run.started_ms]

    try:
        network.wait_for(new, 2)
    except LabError:
        raise AssertionError(f"no connection; status {run.status}; output: {run.output.strip()[-300:]!r}") from None
    check_between((new()[0]["time_ms"] - run.started_ms) / 1000, 0, within_s, "seconds to the server's accept()")


def translated_network(network, prefix=nat64.PREFIX):
    """A name with an IPv4 address alone, and a NAT64."""
    nat64.start_translator(network, prefix)
    return network.host("four", addresses=["198.51.100.10"])


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_literal_bare(network):
    """Without libhappy an IPv4 literal is out of reach, at once."""
    host = translated_network(network)
    run = network.run(["nc", "-z", host.ipv4[0], "80"])
    check_equal(run.status, 1, "status")
    check_equal(network.accepts(host), [], "connections")


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_literal_configured(network):
    """V6ONLY-2: blocking and non-blocking programs reach a literal by the configured prefix."""
    host = translated_network(network)
    for command in (["nc", "-N", host.ipv4[0], "80"], ["bash", "-c", f"exec 3<>/dev/tcp/{host.ipv4[0]}/80; echo >&3"],
                    ["curl", "-s", f"http://{host.ipv4[0]}/"], ["wget", "-q", "-O-", f"http://{host.ipv4[0]}/"]):
        run = network.run(command, happy=True, environment=CONFIGURED)
        check_equal(run.status, 0, f"status of {command[0]} ({run.output.strip()[-200:]!r})")
        check_reached(network, host, run)


@case("no-ipv4", nameservers=nat64.NAMESERVERS)
def nat64_literal_discovered(network):
    """V6ONLY-5: without configuration and advertisements the prefix is found by DNS, asked once."""
    host = translated_network(network)
    nat64.start_resolver(network)
    for command in (["nc", "-N", host.ipv4[0], "80"], ["curl", "-s", f"http://{host.ipv4[0]}/"]):
        run = network.run(command, happy=True)
        check_equal(run.status, 0, f"status of {command[0]} ({run.output.strip()[-200:]!r})")
        check_reached(network, host, run)


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_no_prefix(network):
    """C46: a network without NAT64: the kernel's own answer, soon the first time and at once afterwards."""
    script = """
import socket, time
for _ in range(3):
    s = socket.socket()
    began = time.monotonic()
    try:
        s.connect(("198.51.100.10", 80))
    except OSError as e:
        print(e.errno, time.monotonic() - began)
"""
    for action, first_s in (("drop", 1.0), ("nxdomain", 0.3), ("nodata", 0.3)):
        network.set_record("ipv4only.arpa", "AAAA", action=action)
        lines = network.run(["python3", "-c", script], happy=True).output.split("\n")
        results = [line.split() for line in lines if line]
        check_equal([r[0] for r in results], ["101"] * 3, f"errno with {action}")
        check_between(float(results[0][1]), 0, first_s, f"seconds of the first with {action}")
        for later in results[1:]:
            check_between(float(later[1]), 0, 0.05, f"seconds of a later one with {action}")


@case()
def nat64_dual_stack_asks_nothing(network):
    """V6ONLY-1: where there is IPv4, ipv4only.arpa is never asked for, not even after ENETUNREACH."""
    host = network.host("both")
    topology.call("ip", "-n", "c", "route", "add", "throw", "198.51.100.99/32")
    network.run(["nc", "-z", host.name, "80"], happy=True)
    run = network.run(["nc", "-z", "-w", "2", "198.51.100.99", "80"], happy=True)
    check_equal(run.status, 1, "status")
    network.sync()
    check_equal(network.find("query", name="ipv4only.arpa"), [], "queries for the prefix")
