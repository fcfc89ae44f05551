"""Names behind a DNS64: their A records lead through the NAT64, where AAAA records lead nowhere or none is wanted."""

import nat64
import topology
from cases import case, check, check_between, check_equal
from nat64 import CONFIGURED, check_reached


@case("no-ipv4", nameservers=nat64.NAMESERVERS)
def case_37_gethostbyname(network):
    """C37: gethostbyname() and an AF_INET socket: a name with AAAA and A, and one with A alone."""
    nat64.start_translator(network)
    nat64.start_resolver(network)
    script = """
import ctypes, socket, sys
class Hostent(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("aliases", ctypes.c_void_p), ("type", ctypes.c_int),
                ("length", ctypes.c_int), ("list", ctypes.POINTER(ctypes.POINTER(ctypes.c_ubyte * 4)))]
libc = ctypes.CDLL(None)
libc.gethostbyname.restype = ctypes.POINTER(Hostent)
found = libc.gethostbyname(sys.argv[1].encode()).contents
address = ".".join(map(str, found.list[0].contents))
s = socket.socket(socket.AF_INET)
s.connect((address, 80))
print(found.type, address, s.getpeername()[0])
"""
    for host in (network.host("dual"), network.host("four", addresses=["198.51.100.10"])):
        run = network.run(["python3", "-c", script, host.name], happy=True)
        check_equal(run.output.strip(), f"2 {host.ipv4[0]} {host.ipv4[0]}", "what the program sees")


# spec: V6ONLY-4 V6ONLY-7
@case("no-ipv4", nameservers=nat64.NAMESERVERS)
def case_38_broken_aaaa(network):
    """C38: a dead AAAA that the DNS64 passes on: the A record, asked for as well, leads there by NAT64."""
    nat64.start_translator(network)
    nat64.start_resolver(network)
    host = network.host("broken", addresses=["2001:db8:2:d::11", "198.51.100.10"])
    for command in (["curl", "-s", f"http://{host.name}/"], ["wget", "-q", "-O-", f"http://{host.name}/"],
                    ["nc", "-N", host.name, "80"]):
        run = network.run(command, happy=True)
        check_equal(run.status, 0, f"status of {command[0]}")
        check_reached(network, host, run, 0.9)
    network.sync()
    check_equal(len(network.find("query", name=host.name, type="A")), 1, "A queries: the resolver keeps the answer")


# spec: NAT64-1
@case("no-ipv4", nameservers=nat64.NAMESERVERS)
def nat64_counts_as_ipv4(network):
    """NAT64-1: an endpoint behind the NAT64 is the second attempt, whether the DNS64 or libhappy synthesised it."""
    nat64.start_translator(network)
    nat64.start_resolver(network)
    dead = [f"2001:db8:2:d::{n}" for n in (1, 2, 3)]
    for label, behind in (("record", "198.51.100.10"), ("inside", nat64.synthesised("198.51.100.10"))):
        host = network.host(label, addresses=[*dead, behind])
        run = network.run(["nc", "-N", host.name, "80"], happy=True, environment=CONFIGURED)
        check_equal(run.status, 0, f"status, {label}")
        network.sync()
        sent = []
        for syn in network.find("syn"):
            if syn["time_ms"] >= run.started_ms and syn["address"] not in sent:
                sent.append(syn["address"])
        inside = [a for a in sent if a.startswith("2001:db8:64:") or a == "198.51.100.10"]
        check(len(sent) >= 2 and sent[0] in dead and sent[1] in inside, f"SYNs, {label}: {sent}")


# spec: V6ONLY-8
@case("no-ipv4", nameservers=nat64.NAMESERVERS)
def nat64_last_resort(network):
    """V6ONLY-8: only AAAA were asked for and they are dead: two seconds after the last attempt A is asked for."""
    nat64.start_translator(network)
    nat64.start_resolver(network)
    script = """
import socket, sys
family, type, protocol, _, to = socket.getaddrinfo(sys.argv[1], 80, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)[0]
s = socket.socket(family, type, protocol)
s.settimeout(8 if len(sys.argv) > 2 else None)
s.connect(to)
print(s.getpeername()[0])
"""
    for label, dead in (("one", ["2001:db8:2:d::11"]), ("two", ["2001:db8:2:d::12", "2001:db8:2:d::13"])):
        for way in ([], ["non-blocking"]):
            host = network.host(label + ("n" if way else "b"), addresses=[*dead, "198.51.100.10"])
            run = network.run(["python3", "-c", script, host.name, *way], happy=True)
            check_equal(run.status, 0, f"status, {label} {way} ({run.output.strip()[-200:]!r})")
            network.sync()
            asked = [q["time_ms"] for q in network.find("query", name=host.name, type="A")]
            first = [q["time_ms"] for q in network.find("query", name=host.name, type="AAAA")]
            check_equal(len(asked), 1, f"A queries, {label} {way}")
            check_between(asked[0] - first[0], 1950 + 250 * (len(dead) - 1), 3500, f"ms until A is asked for, {label}")
            check_reached(network, host, run, 4)


# spec: V6ONLY-8
@case("no-ipv4", nameservers=nat64.NAMESERVERS)
def nat64_last_resort_at_once(network):
    """V6ONLY-8: AAAA that refuse are given up at once, and A is asked for then; healthy ones never ask."""
    nat64.start_translator(network)
    nat64.start_resolver(network)
    refusing = network.host("refuses", addresses=["2001:db8:2::99", "198.51.100.10"])
    for address in ("2001:db8:2::99/128", "198.51.100.10/32"):  # only from such does the server refuse
        topology.call("ip", "-n", "s", "addr", "add", address, "dev", "lo", *(["nodad"] if ":" in address else []))
    script = """
import socket, sys
list = socket.getaddrinfo(sys.argv[1], int(sys.argv[2]), type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
s = socket.socket(list[0][0])
s.connect(list[0][4])
"""
    healthy = network.host("healthy")
    run = network.run(["python3", "-c", script, healthy.name, "80"], happy=True)
    check_equal(run.status, 0, f"status of the healthy one ({run.output.strip()[-200:]!r})")
    network.sync()
    check_equal(network.find("query", name=healthy.name, type="A"), [], "A queries of the healthy one")
    run = network.run(["python3", "-c", script, refusing.name, "81"], happy=True)
    check("refused" in run.output, f"port that is closed everywhere: {run.output.strip()[-200:]!r}")
    network.sync()
    check_equal(len(network.find("query", name=refusing.name, type="A")), 1, "A queries of the refusing one")
