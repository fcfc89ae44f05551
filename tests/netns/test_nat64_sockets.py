"""IPv4 sockets that lead through a NAT64: their families, options and errors are those of IPv4."""

import nat64
import topology
from cases import case, check, check_equal, report, victim
from nat64 import CONFIGURED, V6_NAMESERVER, check_reached, translated_network


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
