"""IPv4 literals on networks that have only IPv6: which are reached by way of a NAT64, and by what prefix."""

import lab
import matrix
import nat64
import topology
from cases import case, check, check_between, check_equal
from nat64 import CONFIGURED, V6_NAMESERVER, check_reached, check_reached_unasked, translated_network


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
            nat64.start_advertised(network)
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
    check_reached_unasked(network, host)
    check("synthesis" not in trace_of(network), "something was synthesised")


def trace_of(network):
    """What all traced programs of the case have written."""
    return "".join(path.read_text(encoding="utf-8") for path in network.folder.glob("*.trace"))


def ftp_network(network, way):
    """An IPv4-only FTP server that knows one way to open a data connection."""
    nat64.start_translator(network)
    host = network.host("ftp", addresses=["198.51.100.10"])
    topology.call("ip", "-n", "s", "addr", "add", f"{host.ipv4[0]}/32", "dev", "lo")
    network.start_daemon("s", lab.PYTHON, "-IS", lab.HERE / "ftp_server.py", host.ipv4[0], way)
    network.wait_ready()
    return host


def check_listed(network, target):
    """curl and ftp list the server's one file."""
    run = network.run(["curl", "-s", "-l", f"ftp://{target}/"], happy=True, environment=CONFIGURED)
    check_equal((run.status, run.output.strip()), (0, "file"), f"listing by curl, {target}")
    run = network.run(["ftp", "-n", target], happy=True, environment=CONFIGURED,
                      stdin=b"user anonymous x\nnlist\nquit\n")
    check("file" in run.output, f"listing by ftp, {target}: {run.output!r}")


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
        check_listed(network, target)


@case("no-ipv4", nameservers=V6_NAMESERVER)
def case_48_ftp_epsv(network):
    """C48: a server that knows EPSV alone: the port is one of the peer that the program believes in."""
    host = ftp_network(network, "EPSV")
    for target in (host.ipv4[0], host.name):
        check_listed(network, target)
