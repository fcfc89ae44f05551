"""Today's programs, unmodified, on a network that has only IPv6: each reaches an IPv4-only server by name and by literal,
whatever way the network tells its prefix."""

import contextlib

import matrix
import nat64
import pivot
from cases import HEAVY, case, check, check_equal
from nat64 import V6_NAMESERVER
from topology import LabError

# Seconds from a program's start to the server's accept(); with a load of 16 on two cores: 0.04 to 0.5, runtimes 0.7.
WITHIN_S, RUNTIMES_S = 0.7, 1.5
TRIES = 2  # who is late on a busy machine starts again
RUNTIMES = ("java", "node", "ruby-nethttp", "perl-LWP")
# A resolver of its own that asks for AAAA alone where no interface has an IPv4 address.
NEEDS_DNS64 = ("aria2c",)
CUT_OFF_S = 6
TABLE = "by NAT64, name and literal: seconds to accept()"


def reached_after(network, words, stdin, target, address, environment):
    """Seconds from a program's start to its connection, None without one, and what it printed."""
    # A program that puts the name into a file name of its own gets one without slashes and colons.
    program = network.start([word.replace("{}", target) for word in words], happy=True, stdin=stdin, trace=True,
                            environment=environment)

    def found():
        return [a for a in network.find("accept", address=address) if a["time_ms"] >= program.started_ms]

    with contextlib.suppress(LabError):
        network.wait_for(lambda: found() or program.ended_within(0), CUT_OFF_S)
    with contextlib.suppress(LabError):
        network.wait_for(found, 0.3)
    run = program.wait(0 if found() else CUT_OFF_S)
    accepts = found()
    return ((accepts[0]["time_ms"] - program.started_ms) / 1000 if accepts else None), run.output


def run_all(network, prefix_by, environment=None, dns64=False):
    """Every program by name and by literal; says which did not get there, or not in time."""
    matrix.compile_java()
    wrong = []
    for number, (name, (words, stdin, _)) in enumerate(matrix.PROGRAMS.items(), 1):
        host = network.host(name.lower().replace("_", "-"), addresses=[f"198.51.100.{number + (number > 52)}"])
        times = []
        by_name = [host.name] if dns64 or name not in NEEDS_DNS64 else []
        for target in (*by_name, host.ipv4[0]):
            limit = RUNTIMES_S if name in RUNTIMES else WITHIN_S
            for _ in range(TRIES):
                seconds, output = reached_after(network, words, stdin, target, host.ipv4[0], environment)
                if seconds is None or seconds <= limit:
                    break
            times.append("never" if seconds is None else f"{seconds:.2f}")
            if seconds is None or seconds > limit:
                wrong.append(f"{name} {target} {times[-1]} ({output.strip()[-80:]!r})")
        pivot.tell(TABLE, name, f"{prefix_by}{', DNS64' if dns64 else ''}", f"{times[0] if by_name else '-'} {times[-1]}")
    check(not wrong, "\n".join(wrong))


@case("no-ipv4", nameservers=V6_NAMESERVER, seconds=240, load=HEAVY)
def nat64_programs_configured(network):
    """Prefix by configuration, no DNS64."""
    nat64.start_translator(network)
    run_all(network, "configured", {"HAPPY_PREF64": nat64.PREFIX})


# spec: V6ONLY-4 V6ONLY-9 QUERY-2
@case("no-ipv4", nameservers=V6_NAMESERVER, seconds=240, load=HEAVY)
def nat64_programs_advertised(network):
    """Prefix by router advertisement, no DNS64."""
    nat64.start_translator(network)
    nat64.start_advertised(network)
    run_all(network, "advertised")


# spec: V6ONLY-5 V6ONLY-7
@case("no-ipv4", nameservers=nat64.NAMESERVERS, seconds=240, load=HEAVY)
def nat64_programs_discovered(network):
    """Prefix by DNS alone, DNS64."""
    nat64.start_translator(network)
    nat64.start_resolver(network)
    run_all(network, "DNS", dns64=True)


@case("no-ipv4", nameservers=nat64.NAMESERVERS, seconds=240, load=HEAVY)
def nat64_programs_both(network):
    """Prefix by router advertisement and by DNS, DNS64."""
    nat64.start_translator(network)
    nat64.start_resolver(network)
    nat64.start_advertised(network)
    run_all(network, "both", dns64=True)


@case("no-ipv4", nameservers=nat64.NAMESERVERS, seconds=240, load=HEAVY)
def nat64_programs_configured_dns64(network):
    """Prefix by configuration, DNS64."""
    nat64.start_translator(network)
    nat64.start_resolver(network)
    run_all(network, "configured", {"HAPPY_PREF64": nat64.PREFIX}, dns64=True)


@case("no-ipv4", nameservers=nat64.NAMESERVERS, seconds=240, load=HEAVY)
def nat64_programs_advertised_dns64(network):
    """Prefix by router advertisement, DNS64 that does not answer for ipv4only.arpa."""
    nat64.start_translator(network)
    nat64.start_resolver(network, local_data='local-zone: "ipv4only.arpa." always_nodata')
    nat64.start_advertised(network)
    run_all(network, "advertised", dns64=True)


def discovery_without_dns64(network):
    """A nameserver that knows ipv4only.arpa by heart and synthesises nothing else."""
    records = " ".join(f'local-data: "ipv4only.arpa. 60 IN AAAA {nat64.synthesised(a)}"'
                       for a in ("192.0.0.170", "192.0.0.171")).replace(' local-data', '\n    local-data')
    nat64.start_resolver(network, dns64=None, local_data=f'local-zone: "ipv4only.arpa." static\n    {records}')


@case("no-ipv4", nameservers=nat64.NAMESERVERS, seconds=240, load=HEAVY)
def nat64_programs_discovered_alone(network):
    """Prefix by DNS, no DNS64."""
    nat64.start_translator(network)
    discovery_without_dns64(network)
    run_all(network, "DNS")


# What a program sees of its socket, and of UDP.
LOOK = """
import socket, sys
s = socket.create_connection((sys.argv[1], 80))
print(s.getpeername()[0], s.getsockname()[0] != "0.0.0.0", s.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    u.connect((sys.argv[1], 53))
    print("UDP")
except OSError:
    print("no UDP")
"""

TNAT64 = "/usr/lib/tnat64/libtnat64.so"
# It hooks connect() alone: not for a JVM's mapped addresses, and not where getaddrinfo() refuses the literal before.
BEYOND_TNAT64 = ("java", "apt-helper", "aria2c")


@case("no-ipv4", nameservers=V6_NAMESERVER, seconds=90, load=HEAVY)
def nat64_beside_tnat64(network):
    """Literals under tnat64 and under libhappy: what tnat64 reaches libhappy reaches, and three that it does not.

    UDP and getsockname() are beyond tnat64, too."""
    matrix.compile_java()
    nat64.start_translator(network)
    config = network.folder / "tnat64.conf"
    prefix = nat64.PREFIX.split("/", maxsplit=1)[0]
    config.write_text(f"local = 127.0.0.0/255.0.0.0\nnat64_prefix = {prefix}\n", encoding="ascii")
    reached, below = {}, {"LD_PRELOAD": TNAT64, "TNAT64_CONF_FILE": str(config)}
    for number, name in enumerate(("nc", "curl", "wget", *BEYOND_TNAT64), 1):
        words, stdin, _ = matrix.PROGRAMS[name]
        host = network.host(name.lower(), addresses=[f"198.51.100.{number}"])
        words = [word.replace("{}", host.ipv4[0]) for word in words]
        program = network.start(words, stdin=stdin, environment=below)
        with contextlib.suppress(LabError):
            network.wait_for(lambda program=program: program.ended_within(0), 3)
        program.wait(0)
        network.sync()
        other = bool(network.find("accept", address=host.ipv4[0]))
        seconds, output = reached_after(network, words, stdin, host.ipv4[0], host.ipv4[0],
                                        {"HAPPY_PREF64": nat64.PREFIX})
        check(seconds is not None, f"{name} under libhappy: {output.strip()[-200:]!r}")
        reached[name] = other
    look = ["/usr/bin/python3", "-c", LOOK, "198.51.100.1"]
    check_equal(network.run(look, happy=True, environment={"HAPPY_PREF64": nat64.PREFIX, "HAPPY_UDP": "1"}).output,
                "198.51.100.1 True 2\nUDP\n", "what a program sees")
    check_equal(network.run(look, environment=below).output, "198.51.100.1 False 10\nno UDP\n", "what it sees under tnat64")
    check(reached["nc"] and reached["wget"], f"tnat64 itself does not work here: {reached}")
    check(not any(reached[name] for name in BEYOND_TNAT64), f"tnat64 has learnt: {reached}")


# spec: QUERY-2
@case("no-ipv4", nameservers=nat64.NAMESERVERS)
def nat64_addrconfig_discovered(network):
    """AI_ADDRCONFIG and a name with an A record alone, before the prefix is known: A is asked for once AAAA gives none."""
    nat64.start_translator(network)
    discovery_without_dns64(network)
    host = network.host("four", addresses=["198.51.100.10"])
    script = """
import socket, sys
family, type, protocol, _, to = socket.getaddrinfo(sys.argv[1], 80, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)[0]
s = socket.socket(family, type, protocol)
s.connect(to)
print(s.getpeername()[0])
"""
    run = network.run(["python3", "-c", script, host.name], happy=True)
    check(run.output.strip() == host.ipv4[0], f"peer: {run.output.strip()[-200:]!r}")
