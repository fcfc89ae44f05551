"""UDP by way of a NAT64, with HAPPY_UDP=1: programs see IPv4 addresses alone. Without it UDP is as bare."""

import nat64
import topology
from cases import case, check, check_equal
from nat64 import V6_NAMESERVER

SERVER = topology.NAMESERVERS[0]
ON = {"HAPPY_PREF64": nat64.PREFIX, "HAPPY_UDP": "1"}

# A query for the A record of four.test, by each pair of functions; prints what the program sees of addresses.
CLIENT = """
import ctypes, os, socket, struct, sys
server, name = sys.argv[1], sys.argv[2]
query = struct.pack(">6H", 0x1234, 0x100, 1, 0, 0, 0)
query += b"".join(bytes([len(x)]) + x.encode() for x in name.split(".")) + bytes([0, 0, 1, 0, 1])
def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    return s
def show(way, reply, source, s):
    print(way, reply[:2] == query[:2], *source, s.getsockname()[0], s.getsockopt(socket.SOL_SOCKET, 39))
s = udp()
for turn in (1, 2):
    s.sendto(query, (server, 53))
    show("sendto", *s.recvfrom(512), s)
s = udp()
s.bind(("0.0.0.0", 5353))
s.sendmsg([query], [], 0, (server, 53))
reply, _, _, source = s.recvmsg(512)
show("sendmsg", reply, source, s)
print("port", s.getsockname()[1])
s = udp()
s.connect((server, 53))
s.send(query)
show("connect", *s.recvfrom(512), s)
print("peer", *s.getpeername())
# The loopback goes on working on a socket that has been elsewhere.
own = udp()
own.bind(("127.0.0.1", 0))
s = udp()
s.sendto(query, (server, 53))
s.recvfrom(512)
s.sendto(b"hello", own.getsockname())
data, source = own.recvfrom(64)
own.sendto(data, source)
print("loopback", s.recvfrom(64)[1] == own.getsockname())
# The forms for many datagrams, by the program's own structures with room for 16 bytes of a name.
class Msghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint), ("iov", ctypes.c_void_p), ("iovlen", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t), ("flags", ctypes.c_int)]
class Mmsghdr(ctypes.Structure):
    _fields_ = [("hdr", Msghdr), ("len", ctypes.c_uint)]
class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
libc = ctypes.CDLL(None, use_errno=True)
s = udp()
s.setblocking(True)
out, into = ctypes.create_string_buffer(query, len(query)), ctypes.create_string_buffer(512)
to = ctypes.create_string_buffer(struct.pack("=H", socket.AF_INET) + struct.pack(">H", 53) + socket.inet_aton(server) + bytes(8), 16)
room = ctypes.create_string_buffer(b"\\xa5" * 32, 32)
def messages(buffer, size, name):
    vector = Iovec(ctypes.addressof(buffer), size)
    keep.append(vector)
    return Mmsghdr(Msghdr(ctypes.addressof(name), 16, ctypes.addressof(vector), 1, None, 0, 0), 0)
keep = []
many = (Mmsghdr * 2)(messages(out, len(query), to), messages(out, len(query), to))
print("sent", libc.sendmmsg(s.fileno(), many, 2, 0), many[0].len == len(query))
many = (Mmsghdr * 1)(messages(into, 512, room))
got = libc.recvmmsg(s.fileno(), many, 1, 0, None)
print("got", got, socket.inet_ntoa(room.raw[4:8]), many[0].hdr.namelen, room.raw[16:] == b"\\xa5" * 16,
      many[0].hdr.name == ctypes.addressof(room))
"""


@case("no-ipv4", nameservers=V6_NAMESERVER)
def udp_translated(network):
    """A client of DNS by IPv4 literal, by every function for datagrams, sees IPv4 addresses alone."""
    nat64.start_translator(network)
    host = network.host("four", addresses=["198.51.100.10"])
    run = network.run(["/usr/bin/python3", "-c", CLIENT, SERVER, host.name], happy=True, environment=ON)
    check_equal(run.output.splitlines(),
                [f"sendto True {SERVER} 53 0.0.0.0 2"] * 2 + [f"sendmsg True {SERVER} 53 0.0.0.0 2", "port 5353"]
                + [f"connect True {SERVER} 53 192.0.0.1 2", f"peer {SERVER} 53", "loopback True", "sent 2 True",
                   f"got 1 {SERVER} 16 True True"], "what the program sees")
    check_equal(run.status, 0, "status")


@case("no-ipv4", nameservers=V6_NAMESERVER)
def udp_programs(network):
    """busybox nslookup asks an IPv4 server, and nc -u gets its bytes there and back."""
    nat64.start_translator(network)
    host = network.host("four", addresses=["198.51.100.10"])
    run = network.run(["busybox", "nslookup", "-type=a", host.name, SERVER], happy=True, environment=ON)
    check(f"Address: {host.ipv4[0]}" in run.output, f"answer by busybox nslookup: {run.output!r}")
    query = bytes.fromhex("123401000001000000000000") + bytes([len(host.name) - 5]) + host.name[:-5].encode() \
        + b"\x04test\x00\x00\x01\x00\x01"
    run = network.run(["nc", "-u", "-w", "1", SERVER, "53"], happy=True, environment=ON, stdin=query)
    check("\x124" in run.output, f"reply to nc -u: {run.output!r}")


NTP_SERVER = """
import os, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("198.51.100.10", 123))
os.write(1, b'{"event": "ready", "who": "ntp"}\\n')
while True:
    data, client = s.recvfrom(48)
    s.sendto(bytes([0x24, 2]) + data[2:24] + data[40:48] + data[32:], client)
"""
# As NTP clients do: an answer counts only from the very address and port that was asked, and with the time that was sent.
NTP_CLIENT = """
import os, select, socket, sys
for way in ("connected", "not connected"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    server, sent = (sys.argv[1], 123), os.urandom(8)
    packet = bytes([0x23]) + bytes(39) + sent
    if way == "connected":
        s.connect(server)
        s.send(packet)
    else:
        s.sendto(packet, server)
    select.select([s], [], [], 3)
    reply, source = s.recvfrom(48)
    print(way, source == server, reply[0] & 7 == 4, reply[24:32] == sent)
    if way == "connected":
        print(s.getpeername() == server, s.getsockname()[0])
"""


@case("no-ipv4", nameservers=V6_NAMESERVER)
def udp_ntp(network):
    """A client of NTP, which compares where an answer comes from with where its question went."""
    nat64.start_translator(network)
    topology.call("ip", "-n", "s", "addr", "add", "198.51.100.10/32", "dev", "lo")
    network.start_daemon("s", "/usr/bin/python3", "-c", NTP_SERVER)
    network.wait_ready()
    run = network.run(["/usr/bin/python3", "-c", NTP_CLIENT, "198.51.100.10"], happy=True, environment=ON)
    check_equal(run.output.splitlines(), ["connected True True True", "True 192.0.0.1", "not connected True True True"],
                "what the program sees")


@case(nameservers=V6_NAMESERVER)
def udp_on_dual_stack(network):
    """Where there is IPv4 nothing changes, HAPPY_UDP=1 or not."""
    host = network.host("four", addresses=["198.51.100.10"])
    command = ["/usr/bin/python3", "-c", CLIENT, SERVER, host.name]
    bare = network.run(command)
    check("sendto True" in bare.output, f"bare: {bare.output!r}")
    for environment in (ON, {}):
        check_equal(network.run(command, happy=True, environment=environment).output, bare.output, f"with {environment}")


@case("no-ipv4", nameservers=V6_NAMESERVER)
def udp_off_by_default(network):
    """Without HAPPY_UDP=1 the kernel's own answer holds for every datagram."""
    nat64.start_translator(network)
    script = f"""
import socket, sys
for family, server in ((socket.AF_INET, "{SERVER}"), (socket.AF_INET6, "::ffff:{SERVER}"), (socket.AF_INET6, "::1")):
    for way in ("sendto", "connect"):
        s = socket.socket(family, socket.SOCK_DGRAM)
        try:
            s.connect((server, 53)) if way == "connect" else s.sendto(b"x", (server, 53))
            print(way, server, s.getsockname()[0])
        except OSError as e:
            print(way, server, e.errno)
if len(sys.argv) == 1:
    sys.exit()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
t = socket.create_connection(("198.51.100.10", 80))  # with a translated TCP socket in the process, too
try:
    s.sendto(b"x", ("{SERVER}", 53))
except OSError as e:
    print(e.errno)
"""
    command, environment = ["/usr/bin/python3", "-c", script], {"HAPPY_PREF64": nat64.PREFIX}
    bare = network.run(command)
    check_equal(network.run(command, happy=True, environment=environment).output, bare.output, "results")
    run = network.run([*command, "tcp"], happy=True, environment=environment)
    check_equal(run.output, bare.output + "101\n", "results beside a translated TCP socket")


ECHO = """
import os, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7777))
os.write(1, b'{"event": "ready", "who": "echo"}\\n')
while True:
    data, client = s.recvfrom(2048)
    s.sendto(b"%d " % client[1] + data, client)
"""

def _run_far_and_near(network, program):
    """Runs a Python program whose arguments are two hosts that echo: behind the NAT64, and one that IPv4 has a route for."""
    far, near = "198.51.100.10", "10.9.9.1"
    nat64.start_translator(network)
    topology.call("ip", "-n", "s", "addr", "add", f"{far}/32", "dev", "lo")
    topology.call("ip", "-n", "c", "addr", "add", "10.9.9.2/24", "dev", "c0")
    topology.call("ip", "-n", "r", "addr", "add", f"{near}/24", "dev", "r0")
    for namespace, address in (("s", far), ("r", near)):
        network.start_daemon(namespace, "/usr/bin/python3", "-c", ECHO, address)
    network.wait_ready()
    return network.run(["/usr/bin/python3", "-c", program, far, near], happy=True, environment=ON)


PORTS = """
import errno, socket, sys
far, near = (sys.argv[1], 7777), (sys.argv[2], 7777)
def ask(s, to):
    s.sendto(b"x", to)
    reply, source = s.recvfrom(100)
    return source == to, int(reply.split()[0])
for bound in (None, ("0.0.0.0", 0), ("0.0.0.0", 4321)):
    for first, second in ((far, near), (near, far)):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(3)
        if bound:
            s.bind(bound)
        told = s.getsockname()[1]
        results = [ask(s, to) for to in (first, second, first)]
        port = s.getsockname()[1]
        wrong = [result for result in results if result != (True, port)]
        print(wrong, s.getsockname()[0], told in (0, port), s.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR))
        for to in (second, first):  # connected here and there, and not any more
            s.connect(to)
            s.send(b"x")
            answered = int(s.recv(100).split()[0]) == port
            print(answered, s.getpeername() == to, len(s.getsockname()), s.getsockname()[1] == port)
        s.close()
# A port that belongs to the program's own IPv6 socket, too
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
six.bind(("::", 4322))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 4322))
try:
    s.sendto(b"x", far)
except OSError as e:
    print(e.errno == errno.ENETUNREACH, s.getsockname())
"""


@case("no-ipv4", nameservers=V6_NAMESERVER)
def udp_ports(network):
    """The port that a program was told stays, and what IPv4 has a route for goes natively, before NAT64 and after it."""
    run = _run_far_and_near(network, PORTS)
    once = ["[] 0.0.0.0 True 0"] + ["True True 2 True"] * 2
    check_equal(run.output.splitlines(), once * 6 + ["True ('0.0.0.0', 4322)"], "what the program sees")
    check_equal(run.status, 0, "status")


CONTROL = """
import errno, select, socket, struct, sys
IP = socket.IPPROTO_IP
TOS, TTL, PKTINFO, RECVERR, RECVTTL, RECVTOS, TRUNCATED = 1, 2, 8, 11, 12, 13, socket.MSG_CTRUNC
far, near = (sys.argv[1], 7777), (sys.argv[2], 7777)
def sorted_control(control):
    return sorted((level, kind) for level, kind, data in control)
for first in (far, near):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    for option in (PKTINFO, RECVTTL, RECVTOS):
        s.setsockopt(IP, option, 1)
    back = {far: [], near: []}
    for to in (first, far, near, far, near):
        s.sendmsg([b"x"], back[to], 0, to)  # as servers answer, that keep to the address which was asked
        data, control, flags, source = s.recvmsg(100, 1000)
        kinds = {kind: data for level, kind, data in control}
        index, spec, destination = struct.unpack("=i4s4s", kinds[PKTINFO])
        own = "10.9.9.2" if to == near else "192.0.0.1"
        print(sorted_control(control) == [(IP, TOS), (IP, TTL), (IP, PKTINFO)], flags, source == to,
              index == socket.if_nametoindex("c0"), socket.inet_ntoa(spec) == own, socket.inet_ntoa(destination) == own,
              len(kinds[TOS]), 1 < struct.unpack("=i", kinds[TTL])[0] <= 64)
        back[to] = [item for item in control if item[1] == PKTINFO]
    s.setsockopt(IP, RECVTTL, 0)
    s.setsockopt(IP, RECVTOS, 0)
    for room in (32, 28, 27, 16, 0):  # CMSG_SPACE and CMSG_LEN of a struct in_pktinfo, and less
        seen = []
        for to in (far, near):
            s.sendto(b"x", to)
            data, control, flags, source = s.recvmsg(100, room)
            seen.append((int(flags & TRUNCATED), [(level, kind, len(data)) for level, kind, data in control]))
        print(seen[0] == seen[1], seen[0] if room > 27 else "")
# What the network says of a port where nobody listens
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.setsockopt(IP, RECVERR, 1)
s.sendto(b"lost", (sys.argv[1], 9))
select.select([s], [], [], 3)
data, control, flags, source = s.recvmsg(100, 1000, socket.MSG_ERRQUEUE)
level, kind, error = control[0]
number, origin, kind_of, code = struct.unpack_from("=IBBB", error)
family, port, offender = struct.unpack_from("=HH4s", error, 16)
print(data, source == (sys.argv[1], 9), (level, kind) == (IP, RECVERR), errno.errorcode[number], origin, kind_of, code, family,
      socket.inet_ntoa(offender) == sys.argv[1])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.connect((sys.argv[1], 9))
s.send(b"lost")
try:
    s.recv(100)
except OSError as e:
    print(errno.errorcode[e.errno], s.getpeername() == (sys.argv[1], 9))
"""


@case("no-ipv4", nameservers=V6_NAMESERVER)
def udp_control_messages(network):
    """What comes beside a datagram, and goes with it, is IPv4's: IP_PKTINFO, TTL and TOS, and the errors of the network."""
    run = _run_far_and_near(network, CONTROL)
    told = ["True 0 True True True True 1 True"] * 5 + ["True (0, [(0, 8, 12)])"] * 2 + ["True "] * 3
    check_equal(run.output.splitlines(), told * 2 + ["b'lost' True True ECONNREFUSED 2 3 3 2 True", "ECONNREFUSED True"],
                "what the program sees")


MAPPED = """
import socket, sys
far = "::ffff:" + sys.argv[1]
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.settimeout(3)
s.sendto(b"x", (far, 7777))
data, source = s.recvfrom(100)
print(source[:2] == (far, 7777), s.getsockname()[0])
s.connect((far, 7777))
s.send(b"x")
data, source = s.recvfrom(100)
print(source[:2] == (far, 7777), s.getpeername()[:2] == (far, 7777), s.getsockname()[0])
s.connect((sys.argv[2], 53))  # an address of its own family
print(s.getpeername()[0] == sys.argv[2], s.getsockname()[0][:9])
"""


@case("no-ipv4", nameservers=V6_NAMESERVER)
def udp_mapped(network):
    """An AF_INET6 socket that sends to ::ffff:a.b.c.d, as a JVM's, sees mapped addresses; others stay what they are."""
    nat64.start_translator(network)
    topology.call("ip", "-n", "s", "addr", "add", "198.51.100.10/32", "dev", "lo")
    network.start_daemon("s", "/usr/bin/python3", "-c", ECHO, "198.51.100.10")
    network.wait_ready()
    run = network.run(["/usr/bin/python3", "-c", MAPPED, "198.51.100.10", V6_NAMESERVER[0]], happy=True, environment=ON)
    check_equal(run.output.splitlines(), ["True ::", "True True ::ffff:192.0.0.1", "True 2001:db8:"], "what the program sees")


WITHDRAWN = """
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.sendto(b"x", (sys.argv[1], 7777))
s.recvfrom(100, socket.MSG_PEEK)
print("answered", flush=True)
while any("2001:db8:64::/96" in open(os.path.join(sys.argv[2], name)).read() for name in os.listdir(sys.argv[2])):
    time.sleep(0.01)
print(s.recvfrom(100)[1] == (sys.argv[1], 7777))
try:
    s.sendto(b"x", (sys.argv[1], 7777))
except OSError as e:
    print(e.errno)
"""


@case("no-ipv4", nameservers=V6_NAMESERVER)
def udp_prefix_withdrawn(network):
    """An answer comes from the address that was asked, also when its prefix holds no more; nothing is sent there then."""
    nat64.start_translator(network)
    network.set_record("ipv4only.arpa", "AAAA", action="nxdomain")
    topology.call("ip", "-n", "s", "addr", "add", "198.51.100.10/32", "dev", "lo")
    network.start_daemon("s", "/usr/bin/python3", "-c", ECHO, "198.51.100.10")
    network.wait_ready()
    nat64.start_advertised(network)
    program = network.start(["/usr/bin/python3", "-c", WITHDRAWN, "198.51.100.10", str(nat64.FOLDER)], happy=True,
                            environment={"HAPPY_UDP": "1"})
    nat64.wait_for(lambda: program.output_path.read_text() == "answered\n", "no answer")
    nat64.advertise(f"{nat64.PREFIX}=0")
    run = program.wait(5)
    check_equal(run.output.splitlines(), ["answered", "True", "101"], "what the program sees")
