"""SRV records (XEP-0495, RFC 2782) of a listed service, which libhappy looks up for a program that names the service."""

import subprocess

from cases import case, check, check_between, check_equal, queries, report, syns_to
from lab import ROOT, Host
from srv import BY_ITSELF, DOMAIN, ECHO, GIT, HTTPS, OWNER, REFUSED, XMPP, check_peer, dead, peer_of, python, set_srv
from topology import ADDRESSES, addresses

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

# What NAME and SERVICE are to a lookup, in order; twice, then connects, as another process and as this one.
HANDED = """
import os, socket, sys
for turn in 1, 2:
    found = socket.getaddrinfo(*sys.argv[1:3], 0, socket.SOCK_STREAM)
    print(f"list{turn}", *[f"{where[0]}@{where[1]}" for *_, where in found])
    s = socket.socket(found[0][0])
    s.connect(found[0][4])
    print(f"peer{turn}", *s.getpeername()[:2])
reader, writer = os.pipe()
if os.fork() == 0:
    family, *_, where = socket.getaddrinfo(*sys.argv[3:5], 0, socket.SOCK_STREAM)[0]
    os.write(writer, f"{int(family)} {where[0]} {where[1]}".encode())
    os._exit(0)
family, host, port = os.read(reader, 200).split()
s = socket.socket(int(family))
s.connect((host.decode(), int(port)))
print("parent", *s.getpeername()[:2])
"""


def connect(network, service="xmpp-client", patience_ms=1500, name=DOMAIN, **settings):
    """The program, with libhappy."""
    environment = {"HAPPY_SRV_PATIENCE_MS": str(patience_ms), **settings}
    return network.run(python(BY_NAME, name, service), happy=True, environment=environment)


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
    told = subprocess.run([ROOT / "scripts/happy-timeline", *network.folder.glob("*.trace")], capture_output=True, text=True,
                          check=True).stdout
    for text in (f"priority 0  target {a.name}  weight 9  port {GIT}", f"[{c.ipv6[0]}]:{HTTPS}", "group 0  because it is the first",
                 "group 0  because the attempt delay has passed", "group 1  because the groups before it keep silent"):
        check(text in told, f"the timeline does not say {text!r}: {told}")


# spec: XMPP-3 XMPP-5
@case()
def order_of_a_group(network):
    """AAAA and A of each target back to back, no answer waited for; then SYNs by weight, families in turn."""
    a, b = dead(network, "a", 20), dead(network, "b", 21)
    for host in (a, b):
        for kind, found in (("AAAA", host.ipv6), ("A", host.ipv4)):
            network.set_record(host.name, kind, records=found, delay_ms=250)
    set_srv(network, (0, 0, GIT, b.name), (0, 65000, GIT, a.name))
    network.run(python(BY_NAME, DOMAIN, "xmpp-client"), happy=True, seconds=3)
    wanted = [(host.name, kind) for host in (a, b) for kind in ("AAAA", "A")]
    check_equal(queries(network, a.name, b.name), wanted, "queries")
    moments = [network.find("query", name=name, type=kind)[0]["time_ms"] for name, kind in wanted]
    check_between(max(moments) - min(moments), 0, 150, "ms from the first query to the last")
    check_equal(syns_to(network, a, b), [(x, GIT) for x in (a.ipv6[0], a.ipv4[0], b.ipv6[0], b.ipv4[0])], "SYNs")


# spec: XMPP-2
@case("v6-slow=900", "v4-slow=900")
def slow_group(network):
    """While attempts of the first group are under way, the second is not touched, however long they take."""
    a, c = network.host("a"), network.host("c")
    set_srv(network, (0, 0, ECHO, a.name), (5, 0, HTTPS, c.name))
    run = connect(network, patience_ms=10000)
    check_peer(run, a, ECHO)
    check_equal(syns_to(network, c), [], "SYNs to the second group")


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


def keep_silent(network, name, *kinds):
    """The nameserver does not answer such queries."""
    for kind in kinds:
        network.set_record(name, kind, action="drop")


def silent_targets(network):
    """(what is silent, domain, host and port to be connected to, shortest and longest time in seconds)"""
    family, hurt, first, among = (network.host(f"{label}-silent", [ADDRESSES["live6"](30 + number), ADDRESSES["live4"](60 + number)])
                                  for number, label in enumerate(("family", "hurt", "first", "among")))
    gone, last, second, spare = network.host("gone-silent"), network.host("last-silent"), network.host("second"), network.host("spare")
    for host in (first, among, gone, last):
        keep_silent(network, host.name, "AAAA", "A")
    keep_silent(network, family.name, "AAAA")
    keep_silent(network, hurt.name, "A")
    own = network.host("all-silent")
    domains = {
        "one family of the first": [(0, 0, ECHO, family.name), (5, 0, HTTPS, spare.name)],
        "one family of the first, whose other refuses": [(0, 0, REFUSED, hurt.name), (5, 0, HTTPS, second.name)],
        "the first": [(0, 0, ECHO, first.name), (5, 0, HTTPS, second.name)],
        "one of several": [(0, 60000, ECHO, among.name), (0, 0, GIT, second.name), (5, 0, HTTPS, spare.name)],
        "all": [(0, 0, ECHO, gone.name), (0, 0, ECHO, first.name), (5, 0, HTTPS, last.name)],
    }
    for number, records in enumerate(domains.values()):
        set_srv(network, *records, owner=f"_xmpp-client._tcp.silent{number}.test")
    for kind, found in (("AAAA", own.ipv6), ("A", own.ipv4)):
        network.set_record("silent4.test", kind, records=found)
    wanted = [(Host("", [], family.ipv4), ECHO, 0, 1.5), (second, HTTPS, 0.9, 5), (second, HTTPS, 0.9, 5), (second, GIT, 0, 1.5),
              (own, XMPP, 1.9, 6)]
    return spare, [(what, f"silent{number}.test", *wanted[number]) for number, what in enumerate(domains)]


# spec: XMPP-2 XMPP-3 XMPP-6
@case()
def silent_targets_dns(network):
    """Targets whose queries are never answered hold nothing up for more than a second: the next priority and, at last, the
    domain are asked for; bare asks for the domain alone."""
    spare, silent = silent_targets(network)
    started = [network.start(python(BY_NAME, domain, "xmpp-client"), happy=True) for _, domain, *_ in silent]
    for (what, domain, host, port, least, most), program in zip(silent, started):
        run = program.wait(9)
        check_peer(run, host, port)
        check_between(run.seconds(), least, most, f"seconds, silent: {what}")
    check_equal(syns_to(network, spare), [], "SYNs to a lower priority")


# spec: XMPP-2
@case()
def late_target(network):
    """An address of the better priority that comes after its patience still goes before what is left of the next one."""
    a, c = network.host("a"), dead(network, "c", 21)
    for kind, found in (("AAAA", a.ipv6), ("A", a.ipv4)):
        network.set_record(a.name, kind, records=found, delay_ms=1800)
    set_srv(network, (0, 0, ECHO, a.name), (5, 0, HTTPS, c.name))
    run = connect(network, patience_ms=10000, HAPPY_CONNECTION_ATTEMPT_DELAY_MS="2000")
    check_peer(run, a, ECHO)
    check_equal([address in c.ipv6 for address, _ in syns_to(network, a, c)], [True, False], "SYNs to the next priority")
    check_between(run.seconds(), 1.7, 6, "seconds")


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


# spec: XMPP-4
@case()
def first_target_decides(network):
    """A first target's AAAA is acted on at once; its A alone waits for the Resolution Delay, then goes."""
    for number, (late, delay_ms, family) in enumerate((("A", 1500, "6"), ("AAAA", 300, "6"), ("AAAA", 4000, "4"))):
        a, b = network.host(f"a{number}"), network.host(f"b{number}")
        name = f"decides{number}.test"
        network.set_record(a.name, late, records=a.ipv4 if late == "A" else a.ipv6, delay_ms=delay_ms)
        for kind, found in (("AAAA", b.ipv6), ("A", b.ipv4)):
            network.set_record(b.name, kind, records=found, delay_ms=3500)
        set_srv(network, (0, 65000, ECHO, a.name), (0, 0, ECHO, b.name), owner=f"_xmpp-client._tcp.{name}")
        run = connect(network, name=name, HAPPY_RESOLUTION_DELAY_MS="1000")
        check_peer(run, Host("", a.ipv6 if family == "6" else [], a.ipv4 if family == "4" else []), ECHO)
        check_equal(syns_to(network, a, b), [(peer_of(run)[0], ECHO)], f"SYNs, {late} late by {delay_ms} ms")
        began = network.find("query", name=f"_xmpp-client._tcp.{name}")[0]["time_ms"]
        low, high = {1500: (0, 1300), 300: (300, 2000), 4000: (950, 3000)}[delay_ms]
        check_between(first_syn_ms(network, a) - began, low, high, f"ms to the SYN, {late} late by {delay_ms} ms")


@case()
def services_not_listed(network):
    """Lookups of other services, by port, of a target, or with HAPPY_SRV=none: no SRV query, and the SYNs of bare."""
    # One address: a busy machine must not make it a race.
    host, target = network.host("host", [ADDRESSES["live6"](80)]), network.host("target")
    for owner in ("https", "xmpp-client"):
        set_srv(network, (0, 0, ECHO, target.name), owner=f"_{owner}._tcp.{host.name}")
    for service, settings in (("https", {}), (str(XMPP), {}), ("xmpp-client", {"HAPPY_SRV": "none"}),
                              ("xmpp-client", {"HAPPY_SRV": "imap,ldap"})):
        before = len(syns_to(network, host))
        runs = connect(network, service, name=host.name, **settings), network.run(python(BY_NAME, host.name, service))
        happy, bare = syns_to(network, host)[before:]
        check_equal((runs[0].output, happy), (runs[1].output, bare), f"output and SYN for {service} with {settings}")
        check(not network.find("query", type="SRV"), f"an SRV query for {service} with {settings}")
    check_equal(syns_to(network, target), [], "SYNs to what the records name")
    connect(network, str(XMPP), name=host.name, HAPPY_SRV="imap,xmpp-client=5222")
    check_equal([e["name"] for e in network.find("query", type="SRV")], [f"_xmpp-client._tcp.{host.name}"],
                "SRV queries by port")
    # A host that was seen as a target is not asked about again, also where its port is listed.
    run = network.run(python(BY_ITSELF, "res_query", f"_xmpp-client._tcp.{host.name}", f"{target.name}:{XMPP}"), happy=True,
                      environment={"HAPPY_SRV": "xmpp-client=5222"})
    check_peer(run, target, XMPP)
    check("target" not in str(network.find("query", type="SRV")), "an SRV query for a target")


# spec: XMPP-1 XMPP-2
@case()
def what_is_handed_out(network):
    """A lookup gives the targets of the best priority alone, each at its port, and the second time as well, when all is
    known; so a parent whose child looks up goes to that port, too. A domain may be its own target."""
    own, c = network.host("own", [ADDRESSES["live6"](20)]), network.host("c", [ADDRESSES["live6"](21)])
    child = network.host("child", [ADDRESSES["live6"](22)])
    set_srv(network, (0, 0, ECHO, own.name), (5, 0, HTTPS, c.name), owner=f"_xmpp-client._tcp.{own.name}")
    set_srv(network, (0, 0, GIT, child.name), owner="_xmpp-client._tcp.parent.test")
    run = network.run(python(HANDED, own.name, "xmpp-client", "parent.test", "xmpp-client"), happy=True)
    wanted = {f"list{turn}": f"{own.ipv6[0]}@{ECHO}" for turn in (1, 2)} | {f"peer{turn}": f"{own.ipv6[0]} {ECHO}" for turn in (1, 2)}
    check_equal(report(run), {**wanted, "parent": f"{child.ipv6[0]} {GIT}"}, f"what the program says: {run.output!r}")
    check_equal(syns_to(network, c), [], "SYNs to the second priority")


ODD_ENVIRONMENT = {"searched": {"LOCALDOMAIN": "odd.test"}, "impatient.test": {"RES_OPTIONS": "timeout:1 attempts:1"}}


def odd_answers(network, b, c):
    """(domain as the program names it, its answer to SRV, host and port to be connected to)"""
    alias = network.host("alias")
    network.set_record(alias.name, "CNAME", records=[b.name])
    network.set_record("_xmpp-client._tcp.cname.test", "CNAME", records=["_xmpp-client._tcp.hosted.test"])
    spare = f"9 0 {HTTPS} {c.name}"
    good = f"0 0 {ECHO} {b.name}"
    return [
        ("many.test", {"records": [f"0 1 {ECHO} gone{i}.test" for i in range(70)] + [spare]}, c, HTTPS),  # by TCP, too
        ("unusable.test", {"records": [f"0 0 0 {c.name}"] * 9 + [f"0 0 {HTTPS} ."] * 9 + [good]}, b, ECHO),
        ("unasked.test", {"records": [f"0 0 {HTTPS} a\u00e4.test", f"0 0 {HTTPS} a*b.test", f"0 0 {HTTPS} -.test", good]}, b, ECHO),
        ("truncated.test", {"records": [good], "action": "truncate"}, b, ECHO),
        ("cname.test", {"records": [spare]}, b, ECHO),
        ("target-cname.test", {"records": [f"0 0 {ECHO} {alias.name}", spare]}, b, ECHO),
        ("Capital.TEST", {"records": [f"0 0 {ECHO} {b.name.upper()}", spare]}, b, ECHO),
        ("dot.test.", {"records": [good, spare]}, b, ECHO),
        ("searched", {"records": [good, spare]}, b, ECHO),
        ("refused.test", {"action": "refused"}, c, XMPP),
        ("failing.test", {"action": "servfail"}, c, XMPP),
        ("garbage.test", {"action": "garbage"}, c, XMPP),
        ("ignored.test", {"action": "drop"}, c, XMPP),
        ("impatient.test", {"action": "drop"}, c, XMPP),
        ("longest." + "x" * 63 + "." + "y" * 63 + "." + "z" * 63 + ".label" + "l" * 35 + ".test", {"records": [good]}, c, XMPP),
    ]


# spec: XMPP-1 XMPP-6
@case()
def odd_answers_to_srv(network):
    """Very many records, useless ones, aliases, spellings, search domains, replies by TCP, and failures, which leave what a
    lookup without SRV records finds."""
    b, c = network.host("b", [ADDRESSES["live6"](20)]), network.host("c", [ADDRESSES["live6"](21)])
    odd = odd_answers(network, b, c)
    for name, answer, *_ in odd:
        zone = "searched.odd.test" if name == "searched" else name.rstrip(".").lower()
        network.set_record(zone, "AAAA", records=c.ipv6)
        if name != "cname.test":
            network.set_record(f"_xmpp-client._tcp.{zone}", "SRV", **answer)
    network.set_record("_xmpp-client._tcp.hosted.test", "SRV", records=[f"0 0 {ECHO} {b.name}"])
    started = [(name, host, port, network.start(python(BY_NAME, name, "xmpp-client"), happy=True,
                                                environment=ODD_ENVIRONMENT.get(name, {})))
               for name, _, host, port in odd]
    for name, host, port, program in started:
        run = program.wait(9)
        check(peer_of(run) == (host.ipv6[0], port), f"{name}: {run.output!r}")


@case()
def target_in_hosts(network):
    """What /etc/hosts says of a target's name holds: the DNS is not asked for it, nor is anything raced there."""
    own, a, b = network.host("own", [ADDRESSES["live6"](20)]), dead(network, "a", 20), network.host("b", [ADDRESSES["live6"](21)])
    network.set_record("overridden.test", "AAAA", records=own.ipv6)
    set_srv(network, (0, 0, ECHO, b.name), owner="_xmpp-client._tcp.overridden.test")
    set_srv(network, (0, 9, GIT, a.name), (0, 1, ECHO, b.name))
    with open("/etc/hosts", "a", encoding="ascii") as hosts:
        hosts.write(f"192.0.2.99 {b.name}\n")
    check_peer(connect(network, name="overridden.test"), own, XMPP)
    check_equal(network.start(python(BY_ITSELF, "res_query", OWNER, f"{a.name}:{GIT}"), happy=True).wait(2).status, None, "status")
    check_equal((queries(network, b.name), syns_to(network, b)), ([], []), "queries for it, and SYNs to it")


@case()
def servers_bind_to_their_own(network):
    """With AI_PASSIVE a service's name is that of the address to bind to: no SRV record is asked for."""
    network.set_record("_xmpp-server._tcp.passive.test", "SRV", records=["1 1 5269 far.test"])
    network.set_record("far.test", "A", records=["198.51.100.9"])
    network.set_record("passive.test", "A", records=["192.0.2.2"])
    script = ("import socket\n"
              "for found in socket.getaddrinfo('passive.test', 'xmpp-server', socket.AF_INET, socket.SOCK_STREAM, 0, socket.AI_PASSIVE):\n"
              "    socket.socket(found[0]).bind(found[4]); print(found[4])\n")
    run = network.run(python(script), happy=True)
    check_equal((run.status, run.output), (0, "('192.0.2.2', 5269)\n"), "what is bound to")
    check_equal(network.find("query", type="SRV"), [], "queries for SRV")
