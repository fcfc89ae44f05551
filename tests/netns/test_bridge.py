"""Programs that can take only IPv4 reach names that have only IPv6: an address from a pool stands for them."""

import contextlib
import subprocess

import matrix
import nat64
import topology
from cases import case, check, check_equal
from nat64 import V6_NAMESERVER
from topology import LabError

ONLY_IPV4 = ("perl-INET", "swaks", "redis-cli", "ncftpls")
SOCAT = ("socat", "-u", "TCP4:{}:25", "OPEN:/dev/null")

GETHOSTBYNAME = """
import ctypes, socket, sys
class Hostent(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("aliases", ctypes.POINTER(ctypes.c_char_p)), ("type", ctypes.c_int),
                ("length", ctypes.c_int), ("list", ctypes.POINTER(ctypes.POINTER(ctypes.c_ubyte * 4)))]
libc = ctypes.CDLL(None)
libc.gethostbyname.restype = ctypes.POINTER(Hostent)
host = libc.gethostbyname(sys.argv[1].encode())
if not host:
    sys.exit("no address")
host = host.contents
address = ".".join(map(str, host.list[0].contents))
again, answer, error = Hostent(), ctypes.POINTER(Hostent)(), ctypes.c_int()
for size, expected in ((8, 34), (2048, 0)):
    room = ctypes.create_string_buffer(size)
    code = libc.gethostbyname_r(sys.argv[1].encode(), ctypes.byref(again), room, size, ctypes.byref(answer),
                                ctypes.byref(error))
    assert code == expected, (size, code)
assert ".".join(map(str, again.list[0].contents)) == address
s = socket.create_connection((address, 80))
print(host.name.decode(), host.type, host.length, bool(host.aliases[0]), address == s.getpeername()[0], address)
"""


@case("no-ipv4", nameservers=V6_NAMESERVER, seconds=60)
def bridge_programs(network):
    """Unmodified IPv4-only programs reach a server that has only an AAAA record, by name."""
    commands = {name: matrix.PROGRAMS[name][:2] for name in ONLY_IPV4}
    commands["socat"] = (SOCAT, b"")
    for name, (words, stdin) in commands.items():
        host = network.host(name.lower(), addresses=[f"2001:db8:2::{10 + list(commands).index(name)}"])
        program = network.start([word.replace("{}", host.name) for word in words], happy=True, stdin=stdin)
        with contextlib.suppress(LabError):
            network.wait_for(lambda host=host: network.accepts(host), 5)
        run = program.wait(0)
        check(network.accepts(host), f"{name} does not get there: {run.status} {run.output.strip()[-200:]!r}")


@case("no-ipv4", nameservers=V6_NAMESERVER)
def bridge_gethostbyname(network):
    """What gethostbyname() and gethostbyname_r() give is as libc's, and getpeername() tells the same address."""
    host = network.host("six", addresses=["2001:db8:2::10"])
    run = network.run(["python3", "-c", GETHOSTBYNAME, host.name], happy=True)
    check(run.output.startswith(f"{host.name} 2 4 False True 251."), f"what the program sees: {run.output!r}")
    check_reached_v6(network, host, run)


def check_reached_v6(network, host, run):
    """The connection came in over IPv6."""
    check_equal(run.status, 0, f"status ({run.output.strip()[-200:]!r})")
    network.wait_accepts(host, 1)


@case("no-ipv4", nameservers=V6_NAMESERVER)
def bridge_races(network):
    """connect() to the pool address races the real endpoints: a dead one costs an attempt's delay, in a child too."""
    host = network.host("six", addresses=["2001:db8:2:d::10", "2001:db8:2::10"])
    script = """
import os, select, socket, sys
to = socket.getaddrinfo(sys.argv[1], 80, socket.AF_INET, socket.SOCK_STREAM)[0][4]
for blocking in (True, False):
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
    s = socket.socket()
    s.setblocking(blocking)
    error = s.connect_ex(to)
    if not blocking:
        select.select([], [s], [], 5)
        error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    assert error == 0 and s.getpeername() == to and s.getsockopt(socket.SOL_SOCKET, 39) == socket.AF_INET
    if not child:
        os._exit(0)
"""
    run = network.run(["python3", "-c", script, host.name], happy=True)
    check_equal((run.status, run.output), (0, ""), "status and output")
    check_equal(len(network.wait_accepts(host, 4)), 4, "connections of parent and children")


LOOK = """
import socket, sys
try:
    print(socket.getaddrinfo(sys.argv[1], 80, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
except socket.gaierror as e:
    print(e.errno)
"""


@case("no-ipv4", nameservers=V6_NAMESERVER)
def bridge_not_with_ipv4(network):
    """A name that has an A record, or nothing at all, gets libc's answer; so does every name with HAPPY_BRIDGE=never."""
    both = network.host("both", addresses=["2001:db8:2::10", "198.51.100.10"])
    four = network.host("four", addresses=["198.51.100.11"])
    six = network.host("six", addresses=["2001:db8:2::12"])
    for name, environment in ((both.name, {}), (four.name, {}), ("nothing.test", {}),
                              (six.name, {"HAPPY_BRIDGE": "never"})):
        bare = network.run(["python3", "-c", LOOK, name])
        happy = network.run(["python3", "-c", LOOK, name], happy=True, environment=environment)
        check_equal(happy.output, bare.output, f"{name} {environment}")


@case(nameservers=V6_NAMESERVER)
def bridge_on_dual_stack(network):
    """With IPv4 at hand nothing is bridged unless HAPPY_BRIDGE=always; then too no packet goes to the pool."""
    host = network.host("six", addresses=["2001:db8:2::10"])
    bare = network.run(["python3", "-c", LOOK, host.name])
    happy = network.run(["python3", "-c", LOOK, host.name], happy=True)
    check_equal(happy.output, bare.output, "without the setting")
    run = network.run(["nc", "-4", "-N", host.name, "80"], happy=True, environment={"HAPPY_BRIDGE": "always"})
    check_reached_v6(network, host, run)
    network.sync()
    check_equal([syn for syn in network.find("syn") if syn["address"].startswith("251.")], [], "SYNs to the pool")


@case(nameservers=V6_NAMESERVER)
def bridge_not_handed(network):
    """A pool address that this process was not handed goes to the kernel as it is; another pool can be configured."""
    host = network.host("six", addresses=["2001:db8:2::10"])
    script = LOOK + """
s = socket.socket()
s.settimeout(1)
try:
    s.connect(("251.9.9.9", 80))
    print("connected")  # the lab's server answers at every address
except OSError as e:
    print(e)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    u.connect((socket.getaddrinfo(sys.argv[1], 80, socket.AF_INET, socket.SOCK_STREAM)[0][4]))
except OSError as e:
    print(e.errno)
"""
    run = network.run(["python3", "-c", script, host.name], happy=True,
                      environment={"HAPPY_BRIDGE": "always", "HAPPY_BRIDGE_POOL": "251"})
    lines = run.output.split("\n")
    check(lines[0].startswith("251.") and lines[1] == "connected" and lines[2] == "101", f"output: {run.output!r}")
    network.sync()
    check_equal([syn["address"] for syn in network.find("syn") if syn["address"].startswith("251.")][:1], ["251.9.9.9"],
                "the SYN of the program's own")
    run = network.run(["python3", "-c", LOOK, host.name], happy=True,
                      environment={"HAPPY_BRIDGE": "always", "HAPPY_BRIDGE_POOL": "100"})
    check(run.output.startswith("100."), f"another pool: {run.output!r}")


HANDS_ON = """
import os, socket, sys
to = socket.getaddrinfo(sys.argv[1], 80, socket.AF_INET, socket.SOCK_STREAM)[0][4]
print(to[0], flush=True)
os.execvp("nc", ["nc", "-z", "-w", "2", to[0], "80"])
"""


@case("no-ipv4", nameservers=V6_NAMESERVER)
def bridge_handed_on(network):
    """A program begun by exec() does not know its parent's pool address: unreachable, and not sought behind a NAT64."""
    nat64.start_translator(network)
    topology.call("ip", "-n", "r", "route", "add", "10.0.0.0/8", "via", "203.0.113.2")  # the network's own, served in the lab
    host = network.host("six", addresses=["2001:db8:2::10"])
    for pool in ("10", "251"):
        run = network.run(["/usr/bin/python3", "-c", HANDS_ON, host.name], happy=True,
                          environment={"HAPPY_PREF64": nat64.PREFIX, "HAPPY_BRIDGE_POOL": pool})
        check(run.output.startswith(f"{pool}."), f"output: {run.output!r}")
        check_equal(run.status, 1, f"status, pool {pool}")
    network.sync()
    check_equal([syn for syn in network.find("syn") if syn["address"].startswith(("2001:db8:64", "10.", "251."))], [],
                "SYNs to the pool")


DATAGRAMS = """
import socket, sys
to = socket.getaddrinfo(sys.argv[1], 53, socket.AF_INET, int(sys.argv[2]))[0][4]
query = bytes.fromhex("123401000001000000000000") + bytes([3]) + b"six" + bytes([4]) + b"test" + bytes([0, 0, 28, 0, 1])
for way in ("sendto", "sendmsg", "connect", "raw"):
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW if way == "raw" else socket.SOCK_DGRAM, 253 if way == "raw" else 0)
    s.settimeout(3)
    try:
        if way == "connect":
            s.connect(to)
            s.send(query)
        elif way == "sendmsg":
            s.sendmsg([query], [], 0, to)
        else:
            s.sendto(query, to)
        data, source = s.recvfrom(512)
        print(way, data[:2] == query[:2], source == to, s.getsockopt(socket.SOL_SOCKET, 39))
    except OSError as e:
        print(way, e.errno)
"""


@case(nameservers=V6_NAMESERVER)
def bridge_datagrams(network):
    """Datagrams to a pool address never leave the host; with HAPPY_UDP=1 they reach the name's server, and it answers."""
    topology.call("ip", "netns", "exec", "c", "nft", "add table ip out; add chain ip out pool { type filter hook output "
                  "priority 0; }; add rule ip out pool ip daddr 251.0.0.0/8 counter")
    network.set_record("six.test", "AAAA", records=[V6_NAMESERVER[0]])
    network.set_record("six.test", "A", action="nodata")
    for udp, kind, expected in (("0", "0", ["sendto 101", "sendmsg 101", "connect 101", "raw 101"]),
                                ("1", "2", ["sendto True True 2", "sendmsg True True 2", "connect True True 2", "raw 101"])):
        run = network.run(["/usr/bin/python3", "-c", DATAGRAMS, "six.test", kind], happy=True,
                          environment={"HAPPY_BRIDGE": "always", "HAPPY_UDP": udp})
        check_equal(run.output.splitlines(), expected, f"HAPPY_UDP={udp}")
    rules = subprocess.run(["ip", "netns", "exec", "c", "nft", "list", "table", "ip", "out"], check=True,
                           capture_output=True, text=True).stdout
    check("packets 0 " in rules, f"packets to the pool: {rules}")
