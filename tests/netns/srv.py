"""SRV records in the lab: a domain's answer, a program that asks for it by itself, and where that is connected to."""

from cases import check, report
from topology import addresses

DOMAIN = "example.test"
OWNER = "_xmpp-client._tcp.example.test"
ECHO, HTTPS, GIT, XMPP = 7, 443, 9418, 5222  # listening
REFUSED = 5223

# Asks for SRV records by a FUNCTION of libc's resolver (unless OWNER is "-"), then goes through HOST:PORT ...
BY_ITSELF = """
import ctypes, socket, sys
room = ctypes.create_string_buffer(4096)
libc = ctypes.CDLL(None)
libc.__res_state.restype = ctypes.c_void_p
function, owner = sys.argv[1:3]
if owner != "-":
    state = [ctypes.c_void_p(libc.__res_state())] if "_n" in function else []
    libc.__res_init()
    size = libc[function](*state, owner.encode(), 1, 33, room, 4096)
    print("answer", room.raw[2:max(size, 2)].hex())
for target in sys.argv[3:]:
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


def peer_of(run):
    """(address, port) that it is connected to."""
    address, port = report(run).get("peer", "none 0").split()
    return address, int(port)


def check_peer(run, host, port):
    """It is connected to the host at its record's port."""
    peer = peer_of(run)
    check(peer[0] in host.addresses() and peer[1] == port, f"peer {peer}; output {run.output!r}")
