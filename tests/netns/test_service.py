"""Service records: HTTPS at port 443. The name's own addresses are dead where a record's are to be seen."""

import json
import os
import pathlib
import subprocess
import time

from cases import case, check, check_between, check_equal, families, queries, report, syns_to
from lab import Host
from service_records import MALFORMED, record
from topology import ADDRESSES, NAMESERVERS, addresses

ECHO = 7  # a port of the lab's servers that is not 443
UNBOUND = "198.51.100.120"  # where the real nameserver listens; no name of the lab has this address


def dead_host(network, label, number=20):
    """A name whose own addresses are silent."""
    return network.host(label, addresses("dead", number))


PROGRAM = """
import socket, sys
s = socket.create_connection((sys.argv[1], sys.argv[2]))
print("peer", s.getpeername()[0])
"""


def program(name, port):
    """A lookup with the port as its service, then connect() to one address after the other; tells the peer."""
    return ["/usr/bin/python3", "-IS", "-c", PROGRAM, name, str(port)]


def connect(network, host, port=443, **options):
    """Runs it with libhappy."""
    return network.run(program(host.name, port), happy=True, **options)


def check_peer(run, host):
    """The program's connection goes to one of the host's addresses."""
    peer = report(run).get("peer")
    check(peer in host.addresses(), f"peer {peer}, not one of {host.addresses()}; output {run.output!r}")


# spec: QUERY-3 QUERY-4
@case()
def service_query_first(network):
    """HTTPS, AAAA, A, back to back; at port 80 and elsewhere there is no HTTPS query."""
    for port, types in (("443", ["HTTPS", "AAAA", "A"]), ("https", ["HTTPS", "AAAA", "A"]), ("80", ["AAAA", "A"]),
                        (str(ECHO), ["AAAA", "A"])):
        host = network.host(f"order-{port}")
        for kind, found in (("HTTPS", []), ("AAAA", host.ipv6), ("A", host.ipv4)):  # no answer helps to send sooner
            network.set_record(host.name, kind, records=found, delay_ms=250)
        connect(network, host, port)
        check_equal([kind for _, kind in queries(network, host.name)], types, f"queries at port {port}")
        first = {}
        for event in network.find("query", name=host.name):
            first.setdefault(event["type"], event["time_ms"])
        check_between(max(first.values()) - min(first.values()), 0, 150, "ms from the first query to the last")


# spec: QUERY-2
@case("v6-none")
def queries_of_ipv4_only(network):
    """A host without IPv6 asks for A alone, and for AAAA only if there is no A."""
    host = network.host("four")
    connect(network, host)
    check_equal([kind for _, kind in queries(network, host.name)], ["HTTPS", "A"], "queries")
    six = network.host("six", [ADDRESSES["live6"](9)])
    connect(network, six)
    check_equal([kind for _, kind in queries(network, six.name)], ["HTTPS", "A", "AAAA"], "queries without an A")


# spec: QUERY-2 QUERY-4
@case("v4-none", nameservers=NAMESERVERS[1:])
def queries_of_ipv6_only(network):
    """A host without IPv4 asks for A too: a NAT64 may be there."""
    host = network.host("six")
    connect(network, host)
    check_equal([kind for _, kind in queries(network, host.name)], ["HTTPS", "AAAA", "A"], "queries")


# spec: SVCB-1
@case()
def alias_chain(network):
    """Aliases are followed to the service; its addresses join the race for the name's dead ones."""
    origin, target = dead_host(network, "origin"), network.host("target")
    network.set_record(origin.name, "HTTPS", records=[record(0, "one.test")])
    network.set_record("one.test", "HTTPS", records=[record(0, target.name)])
    network.set_record(target.name, "HTTPS", records=[record(1)])
    run = connect(network, origin)
    check_peer(run, target)
    check_between(run.seconds(), 0.2, 2, "seconds")
    check_equal(queries(network, origin.name, "one.test", target.name)[:6],
                [(name, kind) for name in (origin.name, "one.test") for kind in ("HTTPS", "AAAA", "A")], "queries")


# spec: SVCB-1
@case()
def alias_without_service(network):
    """Where an alias leads to no service record, its target's addresses are the endpoints."""
    origin, target = dead_host(network, "origin"), network.host("target")
    network.set_record(origin.name, "HTTPS", records=[record(0, target.name)])
    check_peer(connect(network, origin), target)


# spec: SVCB-1
@case()
def alias_loop(network):
    """A loop ends, and the name's own addresses serve at once."""
    host = network.host("round")
    network.set_record(host.name, "HTTPS", records=[record(0, "back.test")])
    network.set_record("back.test", "HTTPS", records=[record(0, host.name)])
    run = connect(network, host)
    check_peer(run, host)
    check_equal(len(syns_to(network, host)), 1, "SYNs")
    check_equal(len([q for q in queries(network) if q[1] == "HTTPS"]), 2, "HTTPS queries")
    # A chain without end ends, too.
    long = network.host("long")
    network.set_record(long.name, "HTTPS", records=[record(0, "n0.test")])
    for number in range(20):
        network.set_record(f"n{number}.test", "HTTPS", records=[record(0, f"n{number + 1}.test")])
    check_peer(connect(network, long), long)
    time.sleep(0.5)
    asked = [name for name, kind in queries(network) if kind == "HTTPS" and name.startswith("n")]
    check_equal(asked, ["n0.test", "n1.test", "n2.test", "n3.test"], "links followed")


# spec: GROUP-2 GROUP-3 SVCB-2
@case()
def two_targets(network):
    """The target of the better priority first, whole, then the other one; the name's own addresses are last."""
    origin = network.host("origin", addresses("dead", 20) + [ADDRESSES["dead4"](21)])
    worse, better = network.host("worse"), network.host("better", addresses("dead", 30))
    network.set_record(origin.name, "HTTPS", records=[record(2, worse.name), record(1, better.name)])
    run = connect(network, origin)
    check_peer(run, worse)
    seen = [address for address, _ in syns_to(network, origin, worse, better)]
    check_equal(seen[0], origin.ipv6[0], "first SYN: the address that the program named")
    check_equal(set(seen[1:3]), set(better.addresses()), "then the better priority")
    check(seen[3] in worse.addresses() and len(seen) == 4, f"then the other one: {seen}")


# spec: ANSWER-4 SVCB-2
@case()
def hints_early(network):
    """Hints at the name serve while its own records are late."""
    host = network.host("hinted")
    for kind, found in (("AAAA", host.ipv6), ("A", host.ipv4)):
        network.set_record(host.name, kind, records=found, delay_ms=1500)
    network.set_record(host.name, "HTTPS", records=[record(1, hints=host.addresses())])
    run = connect(network, host)
    check_peer(run, host)
    asked = network.find("query", name=host.name, type="AAAA")[0]["time_ms"]
    check_between(network.syns(host)[0]["time_ms"] - asked, 0, 110, "ms from the query to the first SYN")


# spec: SVCB-3
@case()
def hint_unconfirmed(network):
    """A hint that the target's own records do not hold is not attempted; with HAPPY_KEEP_HINTS it comes last."""
    for keep in (False, True):
        origin, target = dead_host(network, f"origin{keep:d}", 20 + keep), network.host(f"target{keep:d}")
        network.set_record(target.name, "AAAA", records=[ADDRESSES["dead6"](30 + keep)])
        network.set_record(target.name, "A", records=[ADDRESSES["dead4"](30 + keep)])
        hint = Host("", [], [ADDRESSES["live4"](40 + keep)])
        network.set_record(origin.name, "HTTPS", records=[record(1, target.name, hints=hint.addresses())])
        run = connect(network, origin, seconds=3, environment={"HAPPY_KEEP_HINTS": str(int(keep))})
        if keep:
            check_peer(run, hint)
        else:
            check_equal(syns_to(network, hint), [], "SYNs to the hint")


# spec: SVCB-4
@case()
def other_port(network):
    """A record's port is its endpoint's port; at another port of the program records mean nothing."""
    origin, target = dead_host(network, "origin"), network.host("target")
    network.set_record(origin.name, "HTTPS", records=[record(1, target.name, port=ECHO)])
    run = connect(network, origin)
    check_peer(run, target)
    check_equal({port for _, port in syns_to(network, target)}, {ECHO}, "ports")
    plain = dead_host(network, "plain", 25)
    network.set_record(plain.name, "HTTPS", records=[record(1, target.name, port=ECHO)])
    before = syns_to(network, target)
    connect(network, plain, port=80, seconds=2)
    check_equal(syns_to(network, target), before, "SYNs to the target from port 80")


# spec: QUERY-3
@case()
def further_services(network):
    """HAPPY_SERVICES names other ports: the query goes to _PORT._SCHEME.NAME."""
    origin, target = dead_host(network, "origin"), network.host("target")
    network.set_record(f"_{ECHO}._https.{origin.name}", "HTTPS", records=[record(1, target.name)])
    run = connect(network, origin, port=ECHO, environment={"HAPPY_SERVICES": f"{ECHO}=https,853=dot"})
    check_peer(run, target)
    check(not network.find("query", name=origin.name, type="HTTPS"), "the bare name was asked for HTTPS")


# spec: QUERY-3
@case()
def service_of_another_scheme(network):
    """What is not https is asked for by SVCB, here of a real nameserver."""
    dead6, dead4 = addresses("dead", 20)
    live = network.host("unused")
    start_unbound(network, f"dot.test. IN AAAA {dead6}", f"dot.test. IN A {dead4}",
                  f"_{ECHO}._dot.dot.test. IN SVCB 1 target.test. alpn=dot port={ECHO}",
                  f"target.test. IN AAAA {live.ipv6[0]}", f"target.test. IN A {live.ipv4[0]}")
    run = network.run(program("dot.test", ECHO), happy=True, environment={"HAPPY_SERVICES": f"{ECHO}=dot"})
    check_peer(run, live)


# spec: SVCB-4 SVCB-5
@case(seconds=120)
def unusable_records(network):
    """No attempt at a target over QUIC alone, with an unknown mandatory key, or of a malformed set."""
    target = network.host("target")
    unusable = {"h3 only": record(1, target.name, alpn=["h3", "h3-29"], no_default_alpn=True),
                "unknown mandatory key": record(1, target.name, mandatory=[667], raw=bytes.fromhex("029b000161")),
                "mandatory key absent": record(1, target.name, mandatory=[3])}
    good = record(1, target.name)
    sets = {what: [rdata] for what, rdata in unusable.items()}
    sets.update({what: [good, rdata] for what, rdata in MALFORMED.items()})
    for number, (what, records) in enumerate(sets.items()):
        origin = network.host(f"bad{number}", [ADDRESSES["live6"](number + 1)])
        network.set_record(origin.name, "A", records=[ADDRESSES["dead4"](number + 1)])
        network.set_record(origin.name, "HTTPS", records=records)
        run = connect(network, origin)
        check_equal((run.status, report(run).get("peer")), (0, origin.ipv6[0]), what)
        check_equal(len(syns_to(network, origin)), 1, f"SYNs with {what}")
        check(not network.find("query", name=target.name), f"the target was asked for with {what}")


# spec: SVCB-5 GROUP-1
@case()
def h3_beside_tcp(network):
    """h3 beside the default protocol, and an ech parameter, change nothing."""
    for number, fields in enumerate(({"alpn": ["h3"]}, {"alpn": ["h3", "h2"], "no_default_alpn": True},
                                     {"ech": b"\0\4abcd"}, {"raw": bytes.fromhex("029b000161")})):
        origin, target = dead_host(network, f"origin{number}", 20 + number), network.host(f"target{number}")
        network.set_record(origin.name, "HTTPS", records=[record(1, target.name, **fields)])
        check_peer(connect(network, origin), target)


# spec: ANSWER-2 ANSWER-3
@case()
def service_silent(network):
    """An HTTPS query that is dropped, or whose answer nobody can read, costs the Resolution Delay and no more; SERVFAIL
    and NXDOMAIN cost nothing."""
    for action, low, high in (("drop", 45, 110), ("servfail", 0, 40), ("nxdomain", 0, 40), ("garbage", 0, 110)):
        host = network.host(f"silent-{action}")
        network.set_record(host.name, "HTTPS", action=action)
        run = connect(network, host)
        check_equal(families([{"address": report(run).get("peer", "")}]), "6", f"family with {action}")
        asked = network.find("query", name=host.name, type="AAAA")[0]["time_ms"]
        check_between(network.syns(host)[0]["time_ms"] - asked, low, high, f"ms to the first SYN with {action}")
        check_equal(len(network.syns(host)), 1, "SYNs")


@case()
def service_learned(network):
    """Where the program names no service, the port of its last connect() to the name decides."""
    host = network.host("learned")
    program = ("import socket,sys\n"
               "for turn in range(2):\n"
               "    found = socket.getaddrinfo(sys.argv[1], None, type=socket.SOCK_STREAM)\n"
               "    s = socket.socket(found[0][0]); s.connect((found[0][4][0], 443)); s.close()\n")
    network.run(["/usr/bin/python3", "-c", program, host.name], happy=True)
    # The addresses are remembered from the first time.
    check_equal([e["type"] for e in network.find("query", name=host.name)], ["AAAA", "A", "HTTPS"], "queries")


@case()
def complete_results(network):
    """Programs that compare addresses, and lookups for datagrams, ask for no service."""
    host = network.host("compared")
    network.set_record(host.name, "HTTPS", records=[record(1, "elsewhere.test")])
    network.run(["getent", "ahosts", host.name], happy=True)
    connect(network, host, environment={"HAPPY_SERVICE_RECORDS": "0"})
    connect(network, host, environment={"HAPPY_PARTIAL": "0"})
    check_equal(set(queries(network, host.name)), {(host.name, "AAAA"), (host.name, "A")}, "queries")


def start_unbound(network, *records):
    """A real nameserver for these records, and the client's only one."""
    folder = pathlib.Path("/run/lab/unbound")
    folder.mkdir()
    lines = "".join(f"  local-data: '{line}'\n" for line in records)
    (folder / "unbound.conf").write_text(
        f"server:\n  interface: {UNBOUND}\n  access-control: 0.0.0.0/0 allow\n  chroot: ''\n  username: ''\n"
        f"  directory: {folder}\n  pidfile: {folder}/pid\n  use-syslog: no\n  logfile: {folder}/log\n"
        f"  do-ip6: no\n  do-daemonize: no\n  module-config: 'iterator'\n  local-zone: 'test.' static\n{lines}",
        encoding="ascii")
    subprocess.run(["ip", "netns", "exec", "s", "ip", "addr", "add", f"{UNBOUND}/32", "dev", "lo"], check=False)
    server = subprocess.Popen(["ip", "netns", "exec", "s", "/usr/sbin/unbound", "-d", "-c", folder / "unbound.conf"])
    pathlib.Path("/etc/resolv.conf").write_text(f"nameserver {UNBOUND}\n", encoding="ascii")
    for _ in range(100):
        if os.path.exists(folder / "log") and "start of service" in (folder / "log").read_text(encoding="utf-8"):
            return server
        time.sleep(0.05)
    raise AssertionError("unbound did not start")


# spec: SVCB-1 SVCB-2 SVCB-4
@case()
def real_nameserver(network):
    """The same from unbound's own encoder: an alias, two priorities, a port, hints, ech, h3 only."""
    dead6, dead4 = addresses("dead", 20)
    live = network.host("unused")
    own = [f"{name}.test. IN {kind} {address}" for name in ("alias", "steered", "quic")
           for kind, address in (("AAAA", dead6), ("A", dead4))]
    start_unbound(
        network, *own,
        "alias.test. IN HTTPS 0 target.test.", "target.test. IN HTTPS 1 . alpn=h2,h3 ech=AARhYmNk",
        f"target.test. IN AAAA {live.ipv6[0]}", f"target.test. IN A {live.ipv4[0]}",
        f"steered.test. IN HTTPS 1 gone.test. ipv4hint={dead4}", f"gone.test. IN A {ADDRESSES['dead4'](21)}",
        f"steered.test. IN HTTPS 2 target.test. port={ECHO} ipv6hint={live.ipv6[0]}",
        "quic.test. IN HTTPS 1 target.test. alpn=h3 no-default-alpn")
    check_peer(network.run(program("alias.test", 443), happy=True), live)
    check_peer(network.run(program("steered.test", 443), happy=True), live)
    check_equal(syns_to(network, live)[-1][1], ECHO, "port")
    before = syns_to(network, live)
    network.run(program("quic.test", 443), happy=True, seconds=2)
    check_equal(syns_to(network, live), before, "SYNs to the target of h3 alone")


# spec: ATTEMPT-3
@case("aaaa-late=500", "v6-drop")
def answers_after_success(network):
    """In a program with threads an answer that comes within a second of success is still taken in."""
    host = network.host("late")
    text = ("import socket,sys,threading,time\n"
            "threading.Thread(target=time.sleep, args=(2,)).start()\n"
            "s = socket.create_connection((sys.argv[1], 7)); s.send(b'x'); s.recv(1); time.sleep(1.5)\n")
    started = network.start(["/usr/bin/python3", "-c", text, host.name], happy=True)
    check_equal(started.wait(20).status, 0, "status")
    events = [json.loads(line) for line in started.trace.read_text(encoding="utf-8").splitlines()]
    late = [e for e in events if e["event"] == "answer" and e["type"] == "AAAA" and e["kind"] == "positive"]
    check_equal(len(late), 1, "AAAA answers taken in")
    check_equal(families(network.syns(host)), "4", "SYNs")
