"""Programs that race by themselves: with libhappy it is one race with several fds, so that no address gets more SYNs than it
gets bare, and none is reached later."""

from cases import REGISTRY, Case, check, check_equal, families
import lab
import matrix
import topology

PROGRAMS = ("curl", "git-http", "py-asyncio-HE", "node", "apt-helper", "links")
FAULTS = ("healthy", "v6-drop", "v6-reset", "v6-unreachable", "v6-slow=180", "first-address-dead", "aaaa-silent")
# As fast as programs without a race of their own, where bare would hang: seconds more than in the healthy network.
LIMITS = {"first-address-dead": 0.9, "aaaa-silent": 0.15}
SLACK_S = 0.4  # two cores, and node and git take their time to start


def own_race(network, program, fault):
    """SYNs per address, the time to accept(), and the exit status, beside bare."""
    words, stdin, _ = matrix.PROGRAMS[program]
    hosts, runs = [network.host(label) for label in ("bare", "happy")], []
    for host in hosts:
        command = [word.replace("{}", host.name) for word in words]
        runs.append(network.run(command, happy=host is hosts[1], stdin=stdin, seconds=4))
    bare, happy = ([syn["address"] for syn in network.syns(host)] for host in hosts)
    place = {address: number for number, address in enumerate(hosts[1].addresses())}
    for address in hosts[1].addresses():
        by_itself = bare.count(hosts[0].addresses()[place[address]])
        check(happy.count(address) <= max(1, by_itself), f"{address}: SYNs {happy}, bare {bare}")
    if fault == "healthy":
        check_equal(*(sorted(families(network.syns(host))) for host in reversed(hosts)), "SYNs")
    times = []
    for host, run in zip(hosts, runs):
        accept = matrix.used_accept(network, host)
        times.append((accept["time_ms"] - run.started_ms) / 1000 if accept else None)
    check(times[1] is not None, f"no connection; status {runs[1].status}, output {runs[1].output[-300:]!r}")
    # git, apt and curl with libhappy reach a server where bare ones were cut off.
    wanted = LIMITS[fault] + SLACK_S + 0.2 if fault in LIMITS else times[0] + SLACK_S
    check(times[1] <= wanted, f"{times[1]:.2f} s to accept(), bare {times[0]}, limit {wanted:.2f}")


# What aiohttp does with several requests: one lookup, each connection to another of its addresses, all are wanted.
IN_TURNS = """
import selectors, socket
wanted, waiting, kept = selectors.DefaultSelector(), 0, []
for family, kind, protocol, _, where in socket.getaddrinfo('{}', 7, type=socket.SOCK_STREAM):
    s = socket.socket(family, kind, protocol)
    s.setblocking(False)
    s.connect_ex(where)
    wanted.register(s, selectors.EVENT_WRITE)
    waiting += 1
while waiting:
    for key, events in wanted.select():
        if events == selectors.EVENT_WRITE:
            key.fileobj.send(b'x')
            wanted.modify(key.fileobj, selectors.EVENT_READ)
        else:
            print(key.fileobj.recv(1))
            wanted.unregister(key.fileobj)
            END(key.fileobj)
            waiting -= 1
"""
BEGINNINGS = {"alone": "",
              "threads": "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()\n"}
ENDS = {"kept": "kept.append", "closed": "socket.socket.close"}  # what becomes of a connection that was used


def in_turns(network, connections, syns, beginning, end):
    """Connections that a program makes to the addresses of a name in turns are none's fallback: each is had."""
    host = network.host("turns")
    run = network.run([lab.PYTHON, "-c", beginning + IN_TURNS.replace("{}", host.name).replace("END", end)], happy=True)
    check_equal((run.status, run.output), (0, "b'x'\n" * connections), "the program")
    check(run.seconds() < 0.6 * connections + SLACK_S, f"{run.seconds():.2f} s")
    if syns:
        check_equal(families(network.syns(host)), syns, "SYNs")


# Two at once, the second unlike the first. What becomes of each.
UNLIKE = """
import select, socket
IPPROTO_MPTCP = 262
first, second, third = (a[4] for a in socket.getaddrinfo('{}', 7, socket.AF_UNSPEC, socket.SOCK_STREAM)[:3])
a = socket.socket(socket.AF_INET6)
b = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, SPOKEN)
BIND
for s, where in ((a, first), (b, second)):
    s.setblocking(False)
    s.connect_ex(where)
left = [a, b]
while left:
    ready = select.select([], left, [], 2)[1]
    for s in ready or left:
        print('ab'[s is b], bool(ready), *(s.getsockopt(socket.SOL_SOCKET, o) for o in (socket.SO_DOMAIN, socket.SO_PROTOCOL)))
    left = [s for s in left if ready and s not in ready]
"""
LONELY = "b = socket.socket(); b.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'lo'); second = third"
ALIKE_NOT = {
    "bound": ("0", f"b.bind(('{topology.OWN_V6}', 0))", ["a True 2 6", "b False 10 6"]),
    "interface": ("0", LONELY, ["a True 2 6", "b False 2 6"]),
    "protocol": ("IPPROTO_MPTCP", "", ["a True 2 6", "b True 2 262"]),
}


def unlike(network, protocol, bind, wanted):
    """None is given a winner that comes from an address or interface which it has not bound, or speaks another protocol."""
    host = network.host("unlike")
    program = UNLIKE.replace("{}", host.name).replace("SPOKEN", protocol).replace("BIND", bind)
    run = network.run([lab.PYTHON, "-c", program], happy=True)
    check_equal((run.status, sorted(run.output.split("\n"))[1:]), (0, wanted), "the program")


for how, (its_protocol, its_bind, both) in ALIKE_NOT.items():
    REGISTRY[f"own_race_unlike.{how}"] = Case(unlike, ("first-address-dead",), (its_protocol, its_bind, both))
for by, before in BEGINNINGS.items():
    for what, after in ENDS.items():
        for kind, count, seen in ("healthy", 2, "64"), ("v6-drop", 2, "644"), ("first-address-dead", 4, ""):
            REGISTRY[f"in_turns.{kind}.{by}.{what}"] = Case(in_turns, (kind,), (count, seen, before, after))
for name in PROGRAMS:
    for kind in FAULTS:
        REGISTRY[f"own_race.{name}.{kind}"] = Case(own_race, (kind,), (name, kind))
