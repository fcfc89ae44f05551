"""IPv4 by way of a NAT64, on networks that have only IPv6."""

import os

import lab
import matrix
import nat64
import topology
from cases import case, check, check_between, check_equal, report, victim
from topology import LabError

V6_NAMESERVER = topology.NAMESERVERS[1:]
CONFIGURED = {"HAPPY_PREF64": nat64.PREFIX}
WITHIN_S = 0.7


def check_reached(network, host, run, within_s=WITHIN_S):
    """The program's data came to the IPv4 server, in time; after how many seconds."""
    def new():
        return [accept for accept in network.find("accept", address=host.ipv4[0])
                if accept["time_ms"] >= run.started_ms]

    try:
        network.wait_for(new, 2)
    except LabError:
        raise AssertionError(f"no connection; status {run.status}; output: {run.output.strip()[-300:]!r}") from None
    seconds = (new()[0]["time_ms"] - run.started_ms) / 1000
    check_between(seconds, 0, within_s, "seconds to the server's accept()")
    return seconds


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


# spec: V6ONLY-2
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_literal_configured(network):
    """V6ONLY-2: blocking and non-blocking programs reach a literal by the configured prefix."""
    host = translated_network(network)
    for command in (["nc", "-N", host.ipv4[0], "80"], ["bash", "-c", f"exec 3<>/dev/tcp/{host.ipv4[0]}/80; echo >&3"],
                    ["curl", "-s", f"http://{host.ipv4[0]}/"], ["wget", "-q", "-O-", f"http://{host.ipv4[0]}/"]):
        run = network.run(command, happy=True, environment=CONFIGURED)
        check_equal(run.status, 0, f"status of {command[0]} ({run.output.strip()[-200:]!r})")
        check_reached(network, host, run)


# spec: V6ONLY-5
@case("no-ipv4", nameservers=nat64.NAMESERVERS)
def nat64_literal_discovered(network):
    """V6ONLY-5: without configuration and advertisements the prefix is found by DNS, asked once."""
    host = translated_network(network)
    nat64.start_resolver(network)
    # With a handler for faults that leaves all signals open, as crash reporters have it.
    guarded = ["/usr/bin/python3", "-X", "faulthandler", "-c", f"import socket; socket.create_connection(('{host.ipv4[0]}', 80))"]
    for command in (["nc", "-N", host.ipv4[0], "80"], ["curl", "-s", f"http://{host.ipv4[0]}/"], guarded):
        run = network.run(command, happy=True)
        check_equal(run.status, 0, f"status of {command[0]} ({run.output.strip()[-200:]!r})")
        check_reached(network, host, run)


# spec: V6ONLY-5
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
    network.set_record("ipv4only.arpa", "A", records=["192.0.0.170", "192.0.0.171"])
    for action, first_s in (("drop", 1.0), ("nxdomain", 0.3), ("nodata", 0.3)):
        network.set_record("ipv4only.arpa", "AAAA", action=action)
        lines = network.run(["python3", "-c", script], happy=True).output.split("\n")
        results = [line.split() for line in lines if line]
        check_equal([r[0] for r in results], ["101"] * 3, f"errno with {action}")
        check_between(float(results[0][1]), 0, first_s, f"seconds of the first with {action}")
        for later in results[1:]:
            check_between(float(later[1]), 0, 0.05, f"seconds of a later one with {action}")


# spec: V6ONLY-1
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


# spec: V6ONLY-3
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_advertised(network):
    """V6ONLY-3: what routers advertise is heard by happy-pref64 and used; a withdrawal counts at once."""
    host = translated_network(network)
    nat64.start_listener(network)
    nat64.advertise(f"{nat64.PREFIX}=1800")
    nat64.wait_for(lambda: nat64.PREFIX in nat64.stored(), "the advertisement was not heard")
    run = network.run(["nc", "-N", host.ipv4[0], "80"], happy=True)
    check_equal(run.status, 0, "status")
    check_reached(network, host, run)
    network.sync()
    check_equal(network.find("query", name="ipv4only.arpa"), [], "queries for the prefix")
    nat64.advertise(f"{nat64.PREFIX}=0")
    nat64.wait_for(lambda: nat64.PREFIX not in nat64.stored(), "the withdrawal was not heard")
    run = network.run(["nc", "-z", host.ipv4[0], "80"], happy=True)
    check_equal(run.status, 1, "status after the withdrawal")


# spec: V6ONLY-3
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_listener_restarted(network):
    """happy-pref64 goes on from its file; a lifetime that has passed meanwhile is over."""
    translated_network(network)
    listener = nat64.start_listener(network)
    nat64.advertise(f"{nat64.PREFIX}=1800", "2001:db8:65::/96=8")
    nat64.wait_for(lambda: "2001:db8:65::/96" in nat64.stored(), "the advertisement was not heard")
    listener.kill()
    listener.wait()
    nat64.start_listener(network)
    check(nat64.PREFIX in nat64.stored(), f"the prefix is lost: {nat64.stored()}")
    nat64.wait_for(lambda: "2001:db8:65::/96" not in nat64.stored(), "the short lifetime does not end")
    check(nat64.PREFIX in nat64.stored(), "the other prefix went with it")


# spec: V6ONLY-3
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_two_routers(network):
    """V6ONLY-3: two routers on a link speak for themselves: a prefix holds until the last of them has withdrawn it."""
    host = translated_network(network)
    network.set_record("ipv4only.arpa", "AAAA", action="nxdomain")
    routers = [nat64.add_router(f"fe80::{n}") for n in (11, 12)]
    nat64.start_listener(network)

    def status(router, prefix, lifetime):
        nat64.advertise(f"{prefix}={lifetime}", source=router)
        nat64.wait_for(lambda: (lifetime > 0) == any(f"prefix {prefix} " in line and f" router {router} " in line
                                                     for line in nat64.stored().splitlines()), f"{router} was not heard")
        run = network.run(["nc", "-N", host.ipv4[0], "80"], happy=True)
        if run.status == 0:
            check_reached(network, host, run)
        return run.status

    check_equal(status(routers[0], nat64.PREFIX, 1800), 0, "status with one router")
    check_equal(status(routers[1], nat64.PREFIX, 1800), 0, "status with two")
    check_equal(status(routers[0], nat64.PREFIX, 0), 0, "status with the second one alone")
    # The latest is tried first; it leads nowhere.
    check_equal(status(routers[0], "2001:db8:2:d::/96", 1800), 0, "status with two prefixes")


# spec: V6ONLY-3
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_two_interfaces(network):
    """V6ONLY-3: what is advertised on two links holds for each; a link that goes down takes its own along."""
    host = translated_network(network)
    network.set_record("ipv4only.arpa", "AAAA", action="nxdomain")
    nat64.add_link()
    nat64.start_listener(network)

    def reached():
        run = network.run(["nc", "-N", host.ipv4[0], "80"], happy=True)
        if run.status == 0:
            check_reached(network, host, run)
        return run.status == 0

    for interface in ("r0", "r2"):
        nat64.advertise(f"{nat64.PREFIX}=1800", interface=interface)
    nat64.wait_for(lambda: nat64.stored().count(nat64.PREFIX) == 2, "one of the links was not heard")
    check(reached(), "not reached with two links")
    nat64.advertise(f"{nat64.PREFIX}=0", interface="r0")
    nat64.wait_for(lambda: nat64.stored().count(nat64.PREFIX) == 1, "the withdrawal was not heard")
    check(reached(), "not reached with the second link's alone")
    topology.call("ip", "-n", "c", "link", "set", "c1", "down")
    nat64.wait_for(lambda: nat64.PREFIX not in nat64.stored(), "the lost link was not noticed")
    check(not reached(), "the prefix of a link that is down is used")


HEARS = """
import errno, socket, sys, threading, time
literal, raced = sys.argv[1:]
def race():  # a dead address first: for as long as this goes on the hidden thread lives
    while True:
        try:
            socket.create_connection((raced, 80)).close()
        except OSError:
            pass
threading.Thread(target=race, daemon=True).start()
def until(wanted):
    seen = None
    while seen != wanted:
        with socket.socket() as s:
            seen = s.connect_ex((literal, 80))
        time.sleep(0.02)
    print(errno.errorcode.get(seen, "connected"), flush=True)
until(errno.ENETUNREACH)
until(0)
until(errno.ENETUNREACH)
"""


# spec: V6ONLY-3
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_heard_by_itself(network):
    """V6ONLY-3: without happy-pref64 a program hears routers while its hidden thread lives, withdrawals as well."""
    host = translated_network(network)
    network.set_record("ipv4only.arpa", "AAAA", action="nxdomain")
    raced = network.host("raced", addresses=["2001:db8:2:d::10", "2001:db8:2::10"])
    program = network.start(["/usr/bin/python3", "-c", HEARS, host.ipv4[0], raced.name], happy=True)

    def printed(line, lines):
        nat64.wait_for(lambda: program.output_path.read_text().split() == lines, f"no {line!r}")

    printed("ENETUNREACH", ["ENETUNREACH"])
    nat64.wait_for(lambda: "listening" in program.trace.read_text(), "nobody listens")
    nat64.advertise(f"{nat64.PREFIX}=1800")
    printed("connected", ["ENETUNREACH", "connected"])
    nat64.advertise(f"{nat64.PREFIX}=0")
    run = program.wait(10)
    check_equal((run.status, run.output.split()[2:]), (0, ["ENETUNREACH"]), "after the withdrawal")


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_file_not_believed(network):
    """A state file that anybody could have written, that is cut off or another network's: no prefix, no crash."""
    host = translated_network(network)
    network.set_record("ipv4only.arpa", "AAAA", action="nxdomain")
    nat64.start_listener(network).kill()
    nat64.advertise(f"{nat64.PREFIX}=1800")
    path = next(path for path in nat64.FOLDER.iterdir() if not path.name.endswith(".new"))
    good = (f"happy-pref64 1 network {path.name}\nprefix {nat64.PREFIX} interface 2 router fe80::1 "
            "expires 999999999\nend\n")

    def status(text=good, mode=0o644, owner=0, folder_mode=0o755, wrapper=()):
        path.write_text(text, encoding="ascii")
        path.chmod(mode)
        os.chown(path, owner, owner)
        nat64.FOLDER.chmod(folder_mode)
        return network.run([*wrapper, "nc", "-z", host.ipv4[0], "80"], happy=True).status

    check_equal(status(), 0, "status with a good file")
    check_equal(status(mode=0o666), 1, "status with a file writable by all")
    check_equal(status(owner=1), 1, "status with somebody else's file")
    check_equal(status(folder_mode=0o777), 1, "status with a folder writable by all")
    check_equal(status(text=good[:-5]), 1, "status with a file cut off")
    check_equal(status(text="\x7f" * 5000), 1, "status with rubbish")
    check_equal(status(text=""), 1, "status with an empty file")
    check_equal(status(text=good.replace(path.name, "1")), 1, "status with another network's file")
    check_equal(status(text=good.replace("999999999", "1")), 1, "status with a lifetime that is over")
    check_equal(status(mode=0, wrapper=("setpriv", "--bounding-set=-dac_override,-dac_read_search")), 1,
                "status with a file that cannot be read")
    check_equal(status(), 0, "status with a good file again")
    path.unlink()
    path.symlink_to("/run/lab/home/stolen")
    check_equal(network.run(["nc", "-z", host.ipv4[0], "80"], happy=True).status, 1, "status with a symbolic link")


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_family_lie(network):
    """A program that has room for an IPv4 address alone sees AF_INET everywhere, in copies and children too."""
    host = translated_network(network)
    for blocking in ("blocking", "non-blocking"):
        run = network.run(victim("believes", host.ipv4[0], 80, blocking), happy=True, environment=CONFIGURED)
        check_equal(run.status, 0, f"status, {blocking}: {run.output!r}")
        seen = report(run)
        for who in ("socket", "copy", "child"):
            check_equal(seen[who], f"peer 2 16 {host.ipv4[0]}:80 own 2 16 192.0.0.1 domain 2 tos 16", f"{who}, {blocking}")


OPTIONS = """
import select, socket, struct, sys
IP, IP6 = socket.IPPROTO_IP, socket.IPPROTO_IPV6
# number of the IPv4 option, of the IPv6 one, values before and after connect()
PAIRS = {"TOS": (1, 67, 16, 8), "TTL": (2, 16, 33, 44), "MTU_DISCOVER": (10, 23, 2, 1), "RECVERR": (11, 25, 1, 0),
         "MINTTL": (21, 73, 3, 5), "RECVTOS": (13, 66, 1, 0), "RECVTTL": (12, 51, 1, 0), "PKTINFO": (8, 49, 1, 0),
         "RECVORIGDSTADDR": (20, 74, 1, 0), "RECVFRAGSIZE": (25, 77, 1, 0)}
ALONE = {"RECVOPTS": (6, 1, 0), "MULTICAST_TTL": (33, 7, 9), "MULTICAST_LOOP": (34, 0, 1), "TRANSPARENT": (19, 1, 0)}
kind, address, wrong = socket.SOCK_DGRAM if sys.argv[1] == "udp" else socket.SOCK_STREAM, sys.argv[2], []
s = socket.socket(socket.AF_INET, kind)
if kind == socket.SOCK_STREAM:
    del ALONE["MULTICAST_TTL"], ALONE["MULTICAST_LOOP"], PAIRS["RECVFRAGSIZE"]
defaults = {name: s.getsockopt(IP, values[0]) for name, values in {**PAIRS, **ALONE}.items()}
def look(when, at):
    for name, values in PAIRS.items():
        seen = s.getsockopt(IP, values[0]), s.getsockopt(IP6, values[1])
        if seen != (values[at], values[at]):
            wrong.append((when, name, seen))
    for name, values in ALONE.items():
        if s.getsockopt(IP, values[0]) != values[at - 1]:
            wrong.append((when, name, s.getsockopt(IP, values[0])))
def change(at):
    for values in PAIRS.values():
        s.setsockopt(IP, values[0], values[at])
    for values in ALONE.values():
        s.setsockopt(IP, values[0], values[at - 1])
change(2)
if sys.argv[3] == "non-blocking":
    s.setblocking(False)
error = s.connect_ex((address, 80))
if error == 115:
    select.select([], [s], [], 3)
    error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
mtu = s.getsockopt(IP, 14)
look("before", 2)
change(3)
look("after", 3)
s.setsockopt(IP, 1, bytes([16]))  # as one byte
if (s.getsockopt(IP, 1), s.getsockopt(IP6, 67)) != (16, 16):
    wrong.append("one byte")
print(error, wrong, mtu)
"""


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_options(network):
    """IPv4 options read back as they were set, before connect() or after it, and hold for the IPv6 packets."""
    host = translated_network(network)
    dead = "2001:db8:2:d::/96"
    for prefixes in (nat64.PREFIX, f"{dead},{nat64.PREFIX}"):
        for words in (("tcp", "blocking"), ("tcp", "non-blocking"), ("udp", "blocking")):
            run = network.run(["/usr/bin/python3", "-c", OPTIONS, words[0], host.ipv4[0], words[1]], happy=True,
                              environment={"HAPPY_PREF64": prefixes, "HAPPY_UDP": "1"})
            check_equal(run.output, "0 [] 1480\n", f"{prefixes} {words}")


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_mapped(network):
    """An AF_INET6 socket that names ::ffff:a.b.c.d, as a JVM's, goes on seeing mapped addresses."""
    host = translated_network(network)
    script = f"""
import socket
s = socket.socket(socket.AF_INET6)
s.connect(("::ffff:{host.ipv4[0]}", 80))
print(s.getpeername()[0], s.getsockname()[0], s.getsockopt(socket.SOL_SOCKET, 39))
s.close()
"""
    run = network.run(["python3", "-c", script], happy=True, environment=CONFIGURED)
    check_equal(run.output.strip(), f"::ffff:{host.ipv4[0]} ::ffff:192.0.0.1 10", "what the program sees")
    check_reached(network, host, run)


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_errors(network):
    """A refusal is told as one, blocking and not, and the socket can be connected again, as an IPv4 one can."""
    host = translated_network(network)
    # Only from an address that is configured does the lab's server refuse.
    topology.call("ip", "-n", "s", "addr", "add", f"{host.ipv4[0]}/32", "dev", "lo")
    script = f"""
import errno, select, socket
def name(error):
    return errno.errorcode.get(error, "0")
for blocking in (True, False):
    s = socket.socket()
    s.setblocking(blocking)
    results = []
    for port in (81, 80):
        error = s.connect_ex(("{host.ipv4[0]}", port))
        if error == errno.EINPROGRESS:
            select.select([], [s], [], 5)
            error = s.connect_ex(("{host.ipv4[0]}", port))
        results.append(name(error))
    again = name(s.connect_ex(("{host.ipv4[0]}", 80)))
    print(blocking, *results, again, s.getpeername())
"""
    run = network.run(["python3", "-c", script], happy=True, environment=CONFIGURED)
    check_equal(run.output.splitlines(),
                [f"{blocking} ECONNREFUSED 0 EISCONN ('{host.ipv4[0]}', 80)" for blocking in (True, False)], "results")


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_inherited(network):
    """A socket that a parent or child has as well is connected where connect() is called, in an epoll set made before."""
    host = translated_network(network)
    script = f"""
import os, select, socket
for connects in ("child", "parent"):
    s = socket.socket()
    poll = select.epoll()
    poll.register(s, select.EPOLLOUT)
    copy = s.dup()
    connected = os.pipe()
    child = os.fork()
    if (child == 0) == (connects == "child"):
        s.connect(("{host.ipv4[0]}", 80))
        print(connects, s.getpeername(), copy.getpeername(), [event == select.EPOLLOUT for fd, event in poll.poll(1)], flush=True)
    os.close(connected[1])
    if child == 0:
        os.read(connected[0], 1)  # until the parent has gone on, too
        os._exit(0)
    os.waitpid(child, 0)
"""
    run = network.run(["/usr/bin/python3", "-c", script], happy=True, environment=CONFIGURED)
    peer = f"('{host.ipv4[0]}', 80)"
    check_equal(run.output.splitlines(), [f"{who} {peer} {peer} [True]" for who in ("child", "parent")], "what is seen")


TIED = """
import socket, sys
far, near = sys.argv[1:]
def tie(s, how):
    if how == "device":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"c0")
    else:
        s.setsockopt(socket.IPPROTO_IP, 50, socket.htonl(socket.if_nametoindex("c0")))  # IP_UNICAST_IF
for how in ("device", "interface"):
    s = socket.socket()
    tie(s, how)
    s.settimeout(3)
    print(how, s.connect_ex((far, 80)), s.getpeername(), s.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)[:2])
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    tie(s, how)
    s.settimeout(3)
    for turn in range(2):
        s.sendto(bytes.fromhex("123401000001000000000000") + b"\\3six\\4test\\0\\0\\1\\0\\1", (near, 53))
        print(s.recvfrom(512)[1] == (near, 53))
"""


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_tied_to_interface(network):
    """A socket that is tied to an interface (curl --interface), where the kernel takes all IPv4 for neighbours."""
    host = translated_network(network)
    run = network.run(["curl", "-sm", "3", "--interface", "c0", f"http://{host.ipv4[0]}/"], happy=True, environment=CONFIGURED)
    check_equal(run.status, 0, "status of curl")
    check_reached(network, host, run)
    run = network.run(["/usr/bin/python3", "-c", TIED, host.ipv4[0], topology.NAMESERVERS[0]], happy=True,
                      environment={**CONFIGURED, "HAPPY_UDP": "1"})
    peer = (host.ipv4[0], 80)
    check_equal(run.output.splitlines(), [f"device 0 {peer} b'c0'", "True", "True", f"interface 0 {peer} b''", "True", "True"],
                "what is seen")
    # An address there, if only of the link: the kernel's own way.
    topology.call("ip", "-n", "c", "addr", "add", "10.9.9.2/24", "dev", "c0")
    topology.call("ip", "-n", "r", "addr", "add", "10.9.9.1/24", "dev", "r0")
    script = ("import socket\ns = socket.socket()\ns.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'c0')\n"
              "print(s.connect_ex(('10.9.9.1', 81)), s.getsockname()[0])")
    run = network.run(["/usr/bin/python3", "-c", script], happy=True, environment=CONFIGURED)
    check_equal(run.output.split()[0], "111", "refused by the neighbour")


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_native_afterwards(network):
    """A socket that the NAT64 has failed goes where IPv4 has a route of its own, and shows IPv4 addresses there."""
    host = translated_network(network)
    topology.call("ip", "-n", "s", "addr", "add", f"{host.ipv4[0]}/32", "dev", "lo")
    script = f"""
import errno, socket
server = socket.create_server(("127.0.0.1", 8080))
for bound in (False, True):
    s = socket.socket()
    if bound:
        s.bind(("0.0.0.0", 4567))
    print(errno.errorcode[s.connect_ex(("{host.ipv4[0]}", 81))], s.connect_ex(("127.0.0.1", 8080)), s.getpeername(),
          s.getsockname()[0], s.getsockname()[1] == 4567, s.getsockopt(socket.SOL_SOCKET, 39))
for name in (("0.0.0.0", 4568), ("127.0.0.1", 4569)):
    s = socket.socket()
    s.connect_ex(("{host.ipv4[0]}", 81))
    s.bind(name)
    print(s.getsockname() == name, s.connect_ex(("127.0.0.1", 8080)), s.getsockname() == ("127.0.0.1", name[1]))
"""
    run = network.run(["/usr/bin/python3", "-c", script], happy=True, environment=CONFIGURED)
    check_equal(run.output.splitlines(), [f"ECONNREFUSED 0 ('127.0.0.1', 8080) 127.0.0.1 {bound} 2" for bound in (False, True)]
                + ["True 0 True"] * 2, "results")


# spec: V6ONLY-2 V6ONLY-6
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_never_synthesised(network):
    """C42, C43: what belongs to the host or the link, or is not global behind 64:ff9b::/96, is left to the kernel."""
    nat64.start_translator(network, "64:ff9b::/96")
    script = """
import socket, sys
for text in sys.argv[1:]:
    s = socket.socket()
    s.settimeout(3)
    try:
        print(text, s.connect_ex((text, 80)))
    except OSError as e:
        print(text, e)
"""
    addresses = ["10.1.2.3", "192.168.1.1", "198.51.100.10", "169.254.1.1", "255.255.255.255", "127.0.0.1", "0.0.0.0"]
    bare = network.run(["python3", "-c", script, *addresses])
    happy = network.run(["python3", "-c", script, *addresses], happy=True,
                        environment={"HAPPY_PREF64": "64:ff9b::/96"})
    check_equal(happy.output, bare.output, "the kernel's results")
    network.sync()
    sent = [syn["address"] for syn in network.find("syn")]
    check_equal([address for address in sent if address.startswith("64:ff9b")], [], "SYNs to the translator")
    reached = network.run(["python3", "-c", script, "45.10.0.10"], happy=True,
                          environment={"HAPPY_PREF64": "64:ff9b::/96"})
    check_equal(reached.output, "45.10.0.10 0\n", "a global address")


LITERALS = ("telnet", "nc", "curl", "ssh", "redis-cli", "psql", "mariadb", "rsync", "lynx", "bash-devtcp")


# spec: V6ONLY-2
@case("no-ipv4", nameservers=nat64.NAMESERVERS, seconds=60)
def case_35_literals(network):
    """C35: each program reaches an IPv4 literal soon, both when the prefix has to be found and when it is known."""
    nat64.start_translator(network)
    nat64.start_resolver(network)
    took = []
    for known in (False, True):
        if known:
            nat64.start_listener(network)
            nat64.advertise(f"{nat64.PREFIX}=1800")
            nat64.wait_for(lambda: nat64.PREFIX in nat64.stored(), "the advertisement was not heard")
        for number, name in enumerate(LITERALS, 1):
            host = network.host(f"{name}-{known}", addresses=[f"198.51.100.{number + known * len(LITERALS)}"])
            words, stdin, _ = matrix.PROGRAMS[name]
            program = network.start([word.replace("{}", host.ipv4[0]) for word in words], happy=True, stdin=stdin)
            network.wait_accepts(host, 1)
            seconds = check_reached(network, host, program.wait(0))
            took.append(f"{name} {'known' if known else 'found'} {seconds:.3f}")
    (network.folder / "times").write_text("\n".join(took) + "\n", encoding="utf-8")


# spec: V6ONLY-1 V6ONLY-2
@case("no-ipv4", nameservers=V6_NAMESERVER)
def case_43_own_host(network):
    """C43: what listens on this host is reached as ever; an IPv4 address of the link alone is no IPv4 connectivity."""
    host = translated_network(network)
    script = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 8080))
for address, port in (("127.0.0.1", 8080), ("0.0.0.0", 8080), ("198.51.100.10", 80)):
    s = socket.socket()
    began = time.monotonic()
    s.connect((address, port))
    print(address, time.monotonic() - began < 0.7, *s.getpeername(), s.getsockname()[0])
"""
    topology.call("ip", "-n", "c", "addr", "add", "169.254.0.2/16", "dev", "c0")
    run = network.run(["/usr/bin/python3", "-c", script], happy=True, environment=CONFIGURED)
    check_equal(run.output.splitlines(),
                ["127.0.0.1 True 127.0.0.1 8080 127.0.0.1", "0.0.0.0 True 127.0.0.1 8080 127.0.0.1",
                 f"{host.ipv4[0]} True {host.ipv4[0]} 80 192.0.0.1"], "what the program sees")
    linked = ["nc", "-z", "-w", "1", "169.254.1.1", "80"]
    check_equal(network.run(linked, happy=True, environment=CONFIGURED).status, network.run(linked).status, "on the link")
    check_equal([syn for syn in network.find("syn") if "a9fe" in syn["address"]], [], "SYNs by NAT64 to the link")


# spec: V6ONLY-6
@case("no-ipv4", nameservers=V6_NAMESERVER)
def case_42_private(network):
    """C42: behind a prefix of the network's own, private IPv4 addresses are the network's to route."""
    translated_network(network)
    for address in ("10.1.2.3", "192.168.1.1"):
        topology.call("ip", "-n", "r", "route", "add", f"{address}/32", "via", "203.0.113.2")
        run = network.run(["nc", "-N", address, "80"], happy=True, environment=CONFIGURED)
        check_equal(run.status, 0, f"status, {address}")
        network.wait_for(lambda address=address: network.find("accept", address=address), 5)


# spec: NAT64-2
@case(nameservers=V6_NAMESERVER)
def nat64_split_routes(network):
    """NAT64-2: a VPN with a route for some of IPv4: that goes natively, the rest by NAT64."""
    host = translated_network(network)
    other = network.host("inside", addresses=["198.51.100.20"])
    topology.call("ip", "-n", "c", "route", "del", "default", "via", "192.0.2.1")
    topology.call("ip", "-n", "c", "route", "add", f"{other.ipv4[0]}/32", "via", "192.0.2.1")
    for destination in (host, other):
        run = network.run(["nc", "-N", destination.ipv4[0], "80"], happy=True, environment=CONFIGURED)
        check_equal(run.status, 0, "status")
        check_reached(network, destination, run)
    peers = {accept["address"]: accept["peer"] for accept in network.find("accept")}
    check(peers[host.ipv4[0]].startswith("192.168.255."), f"not by NAT64: {peers}")
    check_equal(peers[other.ipv4[0]], topology.OWN_V4, "source of the routed one")


# spec: V6ONLY-6
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_two_prefixes(network):
    """V6ONLY-6: several prefixes give several endpoints: one that leads nowhere costs an attempt's delay."""
    host = translated_network(network)
    dead = "2001:db8:2:d::/96"
    for command in (["nc", "-N", host.ipv4[0], "80"], ["wget", "-q", "-O-", f"http://{host.ipv4[0]}/"]):
        run = network.run(command, happy=True, environment={"HAPPY_PREF64": f"{dead},{nat64.PREFIX}"})
        check_equal(run.status, 0, f"status of {command[0]}")
        check_reached(network, host, run)


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_in_handler(network):
    """connect() in a signal handler that has interrupted malloc() goes by NAT64 and allocates nothing."""
    host = translated_network(network)
    for how, prefixes in (("busy-handler", nat64.PREFIX), ("busy-handler-threads-poll", nat64.PREFIX),
                          ("busy-handler-blocked", f"{nat64.PREFIX},2001:db8:65::/96")):
        run = network.run(victim("mallocs", how, 60, host.name, 80), happy=True, environment={"HAPPY_PREF64": prefixes})
        seen = report(run)
        check_equal((run.status, seen.get("mallocs"), seen.get("frees")), (0, "0", "0"), f"{how}: {run.output!r}")
        check(int(seen["at_succeeded"]) > 0, f"{how}: none was reached")


# One of each length of RFC 6052; the lab's own addresses are in 2001:db8::/32.
PREFIXES = ("3fff:64::/32", "3fff:65:100::/40", "2001:db8:122::/48", "2001:db8:122:300::/56", "2001:db8:122:344::/64",
            "2001:db8:64::/96")


# spec: V6ONLY-6
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_lengths(network):
    """V6ONLY-6: every prefix length that tayga translates, which is all of RFC 6052."""
    for number, prefix in enumerate(PREFIXES, 1):
        host = network.host(f"l{prefix[-2:]}", addresses=[f"198.51.100.{number}"])
        translator = nat64.start_translator(network, prefix)
        run = network.run(["nc", "-N", host.ipv4[0], "80"], happy=True, environment={"HAPPY_PREF64": prefix})
        check_equal(run.status, 0, f"status with {prefix}")
        check_reached(network, host, run)
        nat64.stop_translator(translator)


# spec: V6ONLY-1
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_host_has_clat(network):
    """V6ONLY-1: with a 464XLAT in the client nothing is synthesised, and nothing asked: its IPv4 is left alone."""
    host = translated_network(network)
    nat64.start_clat(network)
    run = network.run(["nc", "-N", host.ipv4[0], "80"], happy=True)
    check_equal(run.status, 0, "status")
    check_reached(network, host, run)
    network.sync()
    check_equal(network.find("query", name="ipv4only.arpa"), [], "queries for the prefix")
    check("synthesis" not in trace_of(network), "something was synthesised")


def trace_of(network):
    """What all traced programs of the case have written."""
    return "".join(path.read_text(encoding="utf-8") for path in network.folder.glob("*.trace"))


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


# spec: V6ONLY-3
@case("no-ipv4", nameservers=V6_NAMESERVER)
def case_46_advertised_before_dns(network):
    """C46 (a): the nameserver is silent about ipv4only.arpa, a router tells the prefix: nobody waits for DNS."""
    host = translated_network(network)
    network.set_record("ipv4only.arpa", "AAAA", action="drop")
    nat64.start_listener(network)
    nat64.advertise(f"{nat64.PREFIX}=1800")
    nat64.wait_for(lambda: nat64.PREFIX in nat64.stored(), "the advertisement was not heard")
    for _ in range(3):
        run = network.run(["nc", "-N", host.ipv4[0], "80"], happy=True)
        check_reached(network, host, run, 0.5)


def ftp_network(network, way):
    """An IPv4-only FTP server that knows one way to open a data connection."""
    nat64.start_translator(network)
    host = network.host("ftp", addresses=["198.51.100.10"])
    topology.call("ip", "-n", "s", "addr", "add", f"{host.ipv4[0]}/32", "dev", "lo")
    network.start_daemon("s", lab.PYTHON, "-IS", lab.HERE / "ftp_server.py", host.ipv4[0], way)
    network.wait_ready()
    return host


@case("no-ipv4", nameservers=V6_NAMESERVER)
def case_48_ftp_pasv(network):
    """C48: a server that knows PASV alone hands out an IPv4 address; the data connection goes there by NAT64."""
    host = ftp_network(network, "PASV")
    script = """
import ftplib, sys
ftp = ftplib.FTP(sys.argv[1], timeout=3)
ftp.login()
ftp.trust_server_pasv_ipv4_address = True
print(ftp.af, len(ftp.sock.getpeername()), len(ftp.sock.getsockname()), *ftp.nlst())
"""
    for target in (host.ipv4[0], host.name):
        run = network.run(["/usr/bin/python3", "-c", script, target], happy=True, environment=CONFIGURED)
        check_equal(run.output.strip(), "2 2 2 file", f"families and listing by ftplib, {target}")
        run = network.run(["curl", "-s", "-l", f"ftp://{target}/"], happy=True, environment=CONFIGURED)
        check_equal((run.status, run.output.strip()), (0, "file"), f"listing by curl, {target}")
        run = network.run(["ftp", "-n", target], happy=True, environment=CONFIGURED,
                          stdin=b"user anonymous x\nnlist\nquit\n")
        check("file" in run.output, f"listing by ftp, {target}: {run.output!r}")


@case("no-ipv4", nameservers=V6_NAMESERVER)
def case_48_ftp_epsv(network):
    """C48: a server that knows EPSV alone: the port is one of the peer that the program believes in."""
    host = ftp_network(network, "EPSV")
    for target in (host.ipv4[0], host.name):
        run = network.run(["curl", "-s", "-l", f"ftp://{target}/"], happy=True, environment=CONFIGURED)
        check_equal((run.status, run.output.strip()), (0, "file"), f"listing by curl, {target}")
        run = network.run(["ftp", "-n", target], happy=True, environment=CONFIGURED,
                          stdin=b"user anonymous x\nnlist\nquit\n")
        check("file" in run.output, f"listing by ftp, {target}: {run.output!r}")


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
