"""An IPv6-only network in the lab: what its router does for those who speak IPv4.

    client, IPv6 only ── c0/r0 ── router: tayga (NAT64), unbound (DNS64), advertisements ── r1/s0 ── servers

A case wants the fault `no-ipv4`, and NAMESERVERS of this module where its names shall go by the router's DNS64.
"""

import ipaddress
import pathlib
import subprocess
import sys
import time

import topology
from cases import check_between, check_equal
from topology import LabError

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ATTACH_SECONDS = 5  # 0.05 s on an idle machine
PREFIX = "2001:db8:64::/96"
ROUTER = "2001:db8:1::1"
NAMESERVERS = (ROUTER,)
V6_NAMESERVER = topology.NAMESERVERS[1:]  # the lab's own, which synthesises nothing
POOL = "192.168.255.0/24"
CONFIGURED = {"HAPPY_PREF64": PREFIX}
WITHIN_S = 0.7
_READY_SECONDS = 10

_TAYGA = """tun-device nat64
ipv4-addr 192.168.255.1
ipv6-addr 2001:db8:ff64::1
prefix {prefix}
dynamic-pool 192.168.255.0/24
data-dir {folder}
"""

_UNBOUND = """server:
    interface: {address}
    access-control: ::/0 allow
    module-config: "{modules}iterator"
    {prefix}
    username: ""
    chroot: ""
    pidfile: ""
    directory: "{folder}"
    use-syslog: no
    do-daemonize: no
    domain-insecure: "."
    local-zone: "test." nodefault
    {local_data}
forward-zone:
    name: "."
    forward-addr: {upstream}
remote-control:
    control-enable: no
"""


def synthesised(ipv4, prefix=PREFIX):
    """The address behind a prefix of 96 bits, as text."""
    network = ipaddress.IPv6Network(prefix)
    return str(ipaddress.IPv6Address(int(network.network_address) + int(ipaddress.IPv4Address(ipv4))))


def _wait_until_attached(namespace, device):
    """Until a program reads the TUN device: what is sent to it before is lost."""
    end = time.monotonic() + ATTACH_SECONDS
    while "NO-CARRIER" in subprocess.run(["ip", "-n", namespace, "link", "show", device], capture_output=True, text=True,
                                         check=True).stdout:
        if time.monotonic() > end:
            raise LabError(f"{device}: nobody reads it after {ATTACH_SECONDS} s")
        time.sleep(0.005)


def _in_router(network, *command):
    with open(network.folder / "daemons.stderr", "ab") as errors:
        return subprocess.Popen(["ip", "netns", "exec", "r", *map(str, command)], stdin=subprocess.DEVNULL,
                                stdout=errors, stderr=errors)


def start_translator(network, prefix=PREFIX):
    """A NAT64 for the prefix in the router; translates when this returns."""
    folder = pathlib.Path("/run/lab/tayga")
    folder.mkdir(exist_ok=True)
    config = folder / "tayga.conf"
    config.write_text(_TAYGA.format(prefix=prefix, folder=folder), encoding="ascii")
    topology.call("ip", "netns", "exec", "r", "tayga", "-c", config, "--mktun")
    for command in ("link set nat64 up", f"route add {POOL} dev nat64", f"-6 route add {prefix} dev nat64",
                    "-6 route add 2001:db8:ff64::1 dev nat64"):
        topology.call("ip", "-n", "r", *command.split())
    translator = _in_router(network, "tayga", "-c", config, "-d")
    _wait_until_attached("r", "nat64")
    return translator


def stop_translator(process):
    """Ends it, so that another can begin."""
    process.kill()
    process.wait()
    topology.call("ip", "-n", "r", "link", "del", "nat64")
    topology.call("ip", "-n", "r", "-6", "route", "flush", "2001:db8:ff64::1")


def translated_network(network, prefix=PREFIX):
    """A name with an IPv4 address alone, and a NAT64."""
    start_translator(network, prefix)
    return network.host("four", addresses=["198.51.100.10"])


def start_clat(network):
    """A 464XLAT in the client (RFC 6877): an IPv4 default route whose packets leave as IPv6."""
    folder = pathlib.Path("/run/lab/clat")
    folder.mkdir(exist_ok=True)
    config = folder / "tayga.conf"
    config.write_text(
        f"tun-device clat\nipv4-addr 192.0.0.2\nipv6-addr 2001:db8:1::46:2\nprefix {PREFIX}\n"
        f"map 192.0.0.1 2001:db8:1::46:1\ndata-dir {folder}\n", encoding="ascii")
    topology.call("ip", "netns", "exec", "c", "tayga", "-c", config, "--mktun")
    for command in ("link set clat up", "addr add 192.0.0.1/32 dev clat", "route add default dev clat mtu 1400",
                    "-6 route add 2001:db8:1::46:1 dev clat", "-6 route add 2001:db8:1::46:2 dev clat"):
        topology.call("ip", "-n", "c", *command.split())
    for namespace, path, value in (("c", "ipv6/conf/all/forwarding", 1), ("c", "ipv4/ip_forward", 1)):
        topology.call("ip", "netns", "exec", namespace, "sh", "-c", f"echo {value} > /proc/sys/net/{path}")
    topology.call("ip", "-n", "r", "-6", "route", "add", "2001:db8:1::46:0/112", "via", "2001:db8:1::2")
    with open(network.folder / "daemons.stderr", "ab") as errors:
        subprocess.Popen(["ip", "netns", "exec", "c", "tayga", "-c", config, "-d"], stdin=subprocess.DEVNULL,
                         stdout=errors, stderr=errors)
    _wait_until_attached("c", "clat")


def start_resolver(network, dns64=PREFIX, local_data=""):
    """A nameserver on the router's address that asks the lab's own; `dns64`: the prefix that it synthesises with."""
    folder = pathlib.Path("/run/lab/unbound")
    folder.mkdir(exist_ok=True)
    config = folder / "unbound.conf"
    config.write_text(
        _UNBOUND.format(address=ROUTER, folder=folder, upstream=topology.NAMESERVERS[0], local_data=local_data,
                        modules="dns64 " if dns64 else "", prefix=f"dns64-prefix: {dns64}" if dns64 else ""),
        encoding="ascii")
    network.set_record("ipv4only.arpa", "A", records=["192.0.0.170", "192.0.0.171"])
    _in_router(network, "unbound", "-d", "-c", config)
    query = bytes.fromhex("1234010000010000000000000969707634 6f6e6c79046172706100 00010001".replace(" ", ""))
    script = ("import socket,sys\ns=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM)\ns.settimeout(0.2)\n"
              f"s.sendto(bytes.fromhex('{query.hex()}'),('{ROUTER}',53))\ns.recv(512)")
    until = time.monotonic() + _READY_SECONDS
    while time.monotonic() < until:
        done = subprocess.run(["ip", "netns", "exec", "r", sys.executable, "-c", script], check=False,
                              stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            return
        time.sleep(0.02)
    raise LabError("unbound does not answer")


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


def check_reached_unasked(network, host):
    """A connect() to the IPv4 address comes through, and no nameserver is asked for the prefix."""
    run = network.run(["nc", "-N", host.ipv4[0], "80"], happy=True)
    check_equal(run.status, 0, "status")
    check_reached(network, host, run)
    network.sync()
    check_equal(network.find("query", name="ipv4only.arpa"), [], "queries for the prefix")


# -- router advertisements --

LISTENER = ROOT / "build/happy-pref64"
FOLDER = pathlib.Path("/run/happy-pref64")


def advertise(*options, interface="r0", source=""):
    """One advertisement of the router, or of the one with that link-local address: "PREFIX=LIFETIME" for each prefix."""
    until = time.monotonic() + _READY_SECONDS  # its link-local address is there when both ends are up
    while "fe80" not in subprocess.run(["ip", "-n", "r", "-6", "addr", "show", "dev", interface, "scope", "link"],
                                       capture_output=True, text=True, check=True).stdout:
        if time.monotonic() > until:
            raise LabError(f"{interface} has no link-local address")
        time.sleep(0.005)
    topology.call("ip", "netns", "exec", "r", sys.executable, pathlib.Path(__file__).with_name("advertise.py"),
                  f"{interface}%{source}", *options)


def add_router(source, interface="r0"):
    """Another router on the router's link: a link-local address to advertise from."""
    topology.call("ip", "-n", "r", "addr", "add", f"{source}/64", "dev", interface, "nodad")
    return source


def add_link():
    """A second interface of the client, c1, on a link of its own with the router's r2."""
    topology.call("ip", "link", "add", "c1", "netns", "c", "type", "veth", "peer", "name", "r2", "netns", "r")
    for namespace, interface in (("c", "c1"), ("r", "r2")):
        topology.call("ip", "-n", namespace, "link", "set", interface, "up")


def start_listener(network):
    """happy-pref64 in the client; listens when this returns."""
    FOLDER.parent.chmod(0o755)  # as a system's own /run: what everybody can write to is not believed
    FOLDER.mkdir(mode=0o755, exist_ok=True)
    before = set(FOLDER.iterdir())
    with open(network.folder / "daemons.stderr", "ab") as errors:
        process = subprocess.Popen(["ip", "netns", "exec", "c", LISTENER], stdin=subprocess.DEVNULL, stdout=errors,
                                   stderr=errors)
    if not before:
        wait_for(lambda: any(FOLDER.iterdir()), "happy-pref64 writes no file")
    return process


def start_advertised(network):
    """happy-pref64 in the client, which has heard that the router advertises PREFIX."""
    start_listener(network)
    advertise(f"{PREFIX}=1800")
    wait_for(lambda: PREFIX in stored(), "the advertisement was not heard")


def stored():
    """The text of the client's file."""
    return "".join(path.read_text(encoding="ascii") for path in FOLDER.iterdir() if not path.name.endswith(".new"))


def wait_for(condition, complaint):
    """Returns when the condition holds; LabError if that takes too long."""
    until = time.monotonic() + _READY_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise LabError(complaint)
        time.sleep(0.01)
