"""SRV records (XEP-0495, RFC 2782): libhappy's own lookups of a listed service, and those that programs make."""

from cases import case, check, check_between, check_equal, report
from lab import Host
from topology import ADDRESSES
from test_service import addresses, queries, syns_to

DOMAIN = "example.test"
OWNER = "_xmpp-client._tcp.example.test"
ECHO, HTTPS, GIT, XMPP = 7, 443, 9418, 5222  # listening
REFUSED = 5223

# Looks up DOMAIN by service name, and tries one address after the other.
BY_NAME = """
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], sys.argv[2]))
    print("peer", *s.getpeername()[:2])
except socket.gaierror as error:
    print("code", error.errno)
except OSError as error:
    print("error", error.errno)
"""

# Asks for SRV records by libc's resolver itself (unless OWNER is "-"), then goes through HOST:PORT ...
BY_ITSELF = """
import ctypes, socket, sys
room = ctypes.create_string_buffer(4096)
if sys.argv[1] != "-":
    size = ctypes.CDLL(None).res_query(sys.argv[1].encode(), 1, 33, room, 4096)
    print("answer", room.raw[2:max(size, 2)].hex())
for target in sys.argv[2:]:
    host, port = target.rsplit(":", 1)
    try:
        s = socket.create_connection((host, int(port)))
        print("peer", *s.getpeername()[:2])
        break
    except OSError as error:
        print("error", error.errno)
"""


def python(text, *arguments):
    """A command line."""
    return ["/usr/bin/python3", "-IS", "-c", text, *map(str, arguments)]


def set_srv(network, *records, owner=OWNER):
    """(priority, weight, port, target) as the answer."""
    network.set_record(owner, "SRV", records=[" ".join(map(str, record)) for record in records])


def dead(network, label, number):
    """A target that keeps silent in both families."""
    return network.host(label, addresses("dead", number))


def connect(network, service="xmpp-client", patience_ms=1500, name=DOMAIN, **settings):
    """The program, with libhappy."""
    environment = {"HAPPY_SRV_PATIENCE_MS": str(patience_ms), **settings}
    return network.run(python(BY_NAME, name, service), happy=True, environment=environment)


def peer_of(run):
    """(address, port) that it is connected to."""
    address, port = report(run).get("peer", "none 0").split()
    return address, int(port)


def check_peer(run, host, port):
    """It is connected to the host at its record's port."""
    peer = peer_of(run)
    check(peer[0] in host.addresses() and peer[1] == port, f"peer {peer}; output {run.output!r}")


def first_syn_ms(network, host):
    """When the first SYN went to it."""
    return network.syns(host)[0]["time_ms"]


# spec: XMPP-1 XMPP-2 XMPP-3
@case(seconds=60)
def case_60_silent_group(network):
    """The second group's first SYN comes when the first group has been silent for its patience after the last one."""
    own = network.host("own", addresses("dead", 40))
    a, b, c = dead(network, "a", 20), dead(network, "b", 21), network.host("c")
    set_srv(network, (5, 0, HTTPS, c.name), (0, 9, GIT, a.name), (0, 9, GIT, b.name))
    run = connect(network)
    check_peer(run, c, HTTPS)
    seen = syns_to(network, own, a, b, c)
    check_equal(sorted(seen[:4]), sorted((address, GIT) for address in a.addresses() + b.addresses()), "first group")
    check_equal(len(seen), 5, "SYNs")
    check_equal(seen[4][0], c.ipv6[0], "then the second group")
    last = network.syns(Host("", a.ipv6 + b.ipv6, a.ipv4 + b.ipv4))[-1]["time_ms"]
    check_between(first_syn_ms(network, c) - last, 1350, 2100, "ms from the last SYN to the group's first")
    asked = queries(network, OWNER, DOMAIN, a.name, b.name, c.name)
    check_equal(asked[0], (OWNER, "SRV"), "first query")
    check(asked[1:5] in [[(x.name, kind) for x in order for kind in ("AAAA", "A")] for order in ((a, b), (b, a))],
          f"queries of the first group: {asked[1:5]}")
    check_equal(asked[5:7], [(c.name, "AAAA"), (c.name, "A")], "then the second group")


# spec: XMPP-2
@case()
def refusing_group(network):
    """A group whose targets refuse is exhausted at once."""
    # Of IPv6 alone: the lab's servers answer a closed port by IPv4 with silence.
    a, b = network.host("a", [ADDRESSES["live6"](20)]), network.host("b", [ADDRESSES["live6"](21)])
    c = network.host("c")
    set_srv(network, (0, 1, REFUSED, a.name), (0, 1, REFUSED, b.name), (5, 0, ECHO, c.name))
    run = connect(network, patience_ms=10000)
    check_peer(run, c, ECHO)
    seen = syns_to(network, a, b, c)
    check_equal([address in c.addresses() for address, _ in seen], [False] * 2 + [True], "SYNs to the second group")
    check_between(run.seconds(), 0, 3, "seconds")


# spec: XMPP-1 XMPP-2
@case()
def healthy_group(network):
    """One SYN, to the first target at its port; with IPv6 broken, its IPv4; never one to the second group."""
    a, c = network.host("a"), network.host("c")
    set_srv(network, (0, 0, ECHO, a.name), (5, 0, HTTPS, c.name))
    check_peer(connect(network), a, ECHO)
    check_equal(syns_to(network, a, c), [(a.ipv6[0], ECHO)], "SYNs")
    half = network.host("half", [ADDRESSES["dead6"](30), ADDRESSES["live4"](40)])
    set_srv(network, (0, 0, ECHO, half.name), (5, 0, HTTPS, c.name), owner="_xmpp-client._tcp.split.test")
    check_peer(connect(network, name="split.test"), Host("", [], half.ipv4), ECHO)
    check_equal(syns_to(network, c), [], "SYNs to the second group")


# spec: XMPP-4
@case()
def first_target_late(network):
    """The answers of a later target are held for the Resolution Delay; the first target's then still goes first."""
    a, b = network.host("a"), network.host("b")
    for kind, found in (("AAAA", a.ipv6), ("A", a.ipv4)):
        network.set_record(a.name, kind, records=found, delay_ms=150)
    set_srv(network, (0, 65000, ECHO, a.name), (0, 0, ECHO, b.name))
    check_peer(connect(network, HAPPY_RESOLUTION_DELAY_MS="1000"), a, ECHO)
    check_equal(syns_to(network, b), [], "SYNs to the later target")


# spec: XMPP-6
@case()
def no_srv_record(network):
    """The domain's own addresses at the default port: without records, and after all groups."""
    own = network.host("own")
    network.set_record(DOMAIN, "AAAA", records=own.ipv6)
    network.set_record(DOMAIN, "A", records=own.ipv4)
    check_peer(connect(network), own, XMPP)
    check_equal(queries(network, OWNER, DOMAIN), [(OWNER, "SRV"), (DOMAIN, "AAAA"), (DOMAIN, "A")], "queries")
    a = network.host("a", [ADDRESSES["live6"](20)])
    set_srv(network, (0, 0, REFUSED, a.name), owner="_xmpp-client._tcp.late.test")
    network.set_record("late.test", "AAAA", records=own.ipv6)
    check_peer(connect(network, name="late.test"), own, XMPP)


# spec: XMPP-6
@case()
def service_not_there(network):
    """A single target "." is an error, with no query for an address and no SYN."""
    own = network.host("own")
    network.set_record(DOMAIN, "AAAA", records=own.ipv6)
    set_srv(network, (0, 0, 0, "."))
    run = connect(network)
    check_equal(report(run), {"code": "-2"}, "what the program sees")
    check_equal(queries(network, OWNER, DOMAIN), [(OWNER, "SRV")], "queries")
    check_equal(syns_to(network, own), [], "SYNs")


@case()
def services_not_listed(network):
    """Lookups of other services, by port, of a target, or with HAPPY_SRV=none: no SRV query."""
    host = network.host("host")
    for service, settings in (("https", {}), (str(XMPP), {}), ("xmpp-client", {"HAPPY_SRV": "none"}),
                              ("xmpp-client", {"HAPPY_SRV": "imap,ldap"})):
        connect(network, service, name=host.name, **settings)
        check(not network.find("query", type="SRV"), f"an SRV query for {service} with {settings}")
    connect(network, str(XMPP), name=host.name, HAPPY_SRV="imap,xmpp-client=5222")
    check_equal([e["name"] for e in network.find("query", type="SRV")], [f"_xmpp-client._tcp.{host.name}"],
                "SRV queries by port")


# spec: XMPP-2
@case()
def program_asks_itself(network):
    """A program's own SRV answer: the first target races its neighbours at their ports, not the next group."""
    a, b, c = dead(network, "a", 20), network.host("b"), network.host("c")
    set_srv(network, (0, 9, GIT, a.name), (0, 1, ECHO, b.name), (5, 0, HTTPS, c.name))
    command = python(BY_ITSELF, OWNER, f"{a.name}:{GIT}")
    run = network.run(command, happy=True)
    check_peer(run, b, ECHO)
    check_between(run.seconds(), 0.2, 3, "seconds")
    check_equal(syns_to(network, c), [], "SYNs to the second group")
    bare = network.run(python(BY_ITSELF, OWNER))
    check_equal(report(run)["answer"], report(bare)["answer"], "the answer that the program gets")


@case()
def answer_not_followed(network):
    """No race across targets without the program's answer, for another service, at another port, or if switched off."""
    a, b = dead(network, "a", 20), network.host("b")
    records = ((0, 9, GIT, a.name), (0, 1, ECHO, b.name))
    set_srv(network, *records)
    set_srv(network, *records, owner="_http._tcp.example.test")
    for owner, port, settings in (("-", GIT, {}), ("_http._tcp.example.test", GIT, {}), (OWNER, HTTPS, {}),
                                  (OWNER, GIT, {"HAPPY_SRV": "none"})):
        run = network.run(python(BY_ITSELF, owner, f"{a.name}:{port}"), happy=True, seconds=2.5, environment=settings)
        check_equal(run.status, None, f"ended by itself: {owner} {port} {settings} {run.output!r}")
    check_equal(syns_to(network, b), [], "SYNs to the neighbour")
