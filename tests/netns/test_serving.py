"""Daemons that know their peers by name: an address's name is looked up, and then whether that name has the address.

The peer's AAAA answer is late, its A answer is not: a lookup that goes on with the A alone takes an IPv6 peer for a
stranger. The daemon runs in the client, twice, bare and with libhappy; who asks it in is the servers' namespace.
"""

import ipaddress
import pathlib
import re
import shutil
import time

import hardening
import topology
from cases import case, check, check_equal, families, victim
from lab import LabError

PEERS = {"IPv4": "203.0.113.2", "IPv6": "2001:db8:ff::2"}  # the servers' own
STRANGERS = {"A": "203.0.113.99", "AAAA": "2001:db8:ff::99"}
OWN = {"IPv4": topology.OWN_V4, "IPv6": topology.OWN_V6}
LATE_MS = 200
PORTS = {"bare": 7001, "happy": 7002}
START_SECONDS = 30  # 0.1 s on an idle machine
POSTGRES = pathlib.Path("/usr/lib/postgresql")  # VERSION/bin


def describe_peer(network, name="client.test", honest=True):
    """What DNS says of the peer: the name of its addresses, and (honest) that this name has them."""
    for family, record_type in (("IPv4", "A"), ("IPv6", "AAAA")):
        pointer = ipaddress.ip_address(PEERS[family]).reverse_pointer
        network.set_record(pointer, "PTR", records=[name])
        network.set_record(name, record_type, records=[PEERS[family] if honest else STRANGERS[record_type]],
                           delay_ms=LATE_MS if record_type == "AAAA" else 0)


def await_output(program, text):
    """Returns when a daemon has said it."""
    end = time.monotonic() + START_SECONDS
    while text not in program.output_path.read_text(errors="replace"):
        if time.monotonic() > end or program.ended_within(0):
            raise LabError(f"{text!r} is not in {program.output_path.read_text(errors='replace')!r}")
        time.sleep(0.02)


def masked(text):
    """The text without what differs between any two connections."""
    text = re.sub(r"\bport [0-9]+|\b700[0-9]\b|\[[0-9]+\]", "NUMBER", text)
    return [line.strip() for line in text.splitlines() if line.strip()]


def ask_both(network, item, daemons, make_command, interesting):
    """What the peer got from both daemons, at the same time, and what these wrote of it; both must be equal."""
    seen = {}
    before = {kind: len(daemon.output_path.read_bytes()) for kind, daemon in daemons.items()}
    clients = {kind: network.start(make_command(PORTS[kind]), namespace="s") for kind in daemons}
    for kind, client in clients.items():
        run = client.wait(START_SECONDS)
        log = daemons[kind].output_path.read_bytes()[before[kind]:].decode(errors="replace")
        seen[kind] = (run.status, masked(run.output), [line for line in masked(log) if re.search(interesting, line)])
    texts = [f"status {status}; {(log or said)[-1]}" for status, said, log in seen.values()]
    hardening.tell(item, *texts, seen["bare"] == seen["happy"])
    check_equal(seen["happy"], seen["bare"], f"{item}: with libhappy")
    return seen["bare"]


def check_looked_up(trace, name="client.test"):
    """libhappy was in the daemon when it looked the name up, so that there was something to compare."""
    text = trace.read_text(errors="replace") if trace.exists() else ""
    check(name in text, f"no lookup of {name} in {trace}: {text[-500:]!r}")


# -- sshd --


def start_sshds(network):
    """Both daemons, which let root in from client.test alone, and the client's key."""
    folder = pathlib.Path("/run/lab/ssh")
    for path in (folder, pathlib.Path("/run/sshd")):
        path.mkdir(mode=0o755)
    for key in ("host", "user"):
        topology.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key)
    shadow = folder / "shadow"  # a locked account is not let in
    shadow.write_text("root:*:19000:0:99999:7:::\n")
    topology.call("mount", "--bind", shadow, "/etc/shadow")
    listen = "".join(f"ListenAddress {address}\n" for address in OWN.values())
    config = folder / "config"
    config.write_text(f"{listen}HostKey {folder}/host\nUsePAM no\nUseDNS yes\nAllowUsers root@client.test\n"
                      f"PermitRootLogin yes\nAuthorizedKeysFile {folder}/user.pub\nStrictModes no\nPidFile none\n"
                      "LogLevel VERBOSE\n")
    daemons = {kind: network.start(["/usr/sbin/sshd", "-D", "-e", "-f", config, "-p", port], happy=kind == "happy")
               for kind, port in PORTS.items()}
    for daemon in daemons.values():
        for address in OWN.values():
            await_output(daemon, f"Server listening on {address} port")
    return daemons, folder / "user"


@case(seconds=150)
def serving_sshd(network):
    """UseDNS, and AllowUsers with a host name. (sshd 9.2 asks for the peer's own family only.)"""
    daemons, key = start_sshds(network)

    def command(address, port):
        return ["ssh", "-F/dev/null", "-oBatchMode=yes", "-oStrictHostKeyChecking=no", "-oLogLevel=ERROR",
                "-oUserKnownHostsFile=/dev/null", "-oIdentitiesOnly=yes", "-i", key, "-p", port, f"root@{address}",
                "echo let in"]

    def ask(what, family):
        return ask_both(network, f"sshd, {what}, {family}", daemons,
                        lambda port: command(OWN[family], port),
                        "User root from|Accepted publickey|map back|reverse mapping")

    for family, address in PEERS.items():
        describe_peer(network)
        status, said, log = ask("client.test", family)
        check_equal((status, said), (0, ["let in"]), "bare")
        check(log and log[0].startswith(f"Accepted publickey for root from {address}"), f"log: {log}")
        describe_peer(network, honest=False)
        status, _, log = ask("who claims to be client.test", family)
        check_equal((status, len(set(log))), (255, 2), f"bare: {log}")  # two processes of sshd 10 say so
        check("does not map back" in log[0], f"log: {log}")
        describe_peer(network, "other.test")
        status, _, log = ask("other.test", family)
        check_equal((status, log), (255, ["User root from other.test not allowed because not listed in AllowUsers"]),
                    "bare")
    check_looked_up(daemons["happy"].trace)


# -- PostgreSQL --


def start_postgreses(network):
    """Both servers, which let everybody in from client.test alone."""
    programs = max(POSTGRES.glob("*/bin/initdb"), default=None, key=lambda path: int(path.parts[-3]))
    check(programs, "no PostgreSQL server is installed: scripts/install-packages check")
    programs = programs.parent
    folder = pathlib.Path("/run/lab/postgres")
    folder.mkdir()
    shutil.chown(folder, "nobody", "nogroup")
    as_nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    topology.call(*as_nobody, "env", f"HOME={folder}", programs / "initdb", "-D", folder / "bare", "-U", "postgres",
                  "--no-sync", "--no-locale", "--auth=trust")
    (folder / "bare/pg_hba.conf").write_text("host all all client.test trust\n")
    topology.call("cp", "-a", folder / "bare", folder / "happy")
    daemons = {}
    for kind, port in PORTS.items():
        settings = [f"-clisten_addresses={','.join(OWN.values())}", "-cunix_socket_directories=", "-cfsync=off",
                    f"-cport={port}", "-cshared_buffers=1MB", "-clog_line_prefix="]
        daemons[kind] = network.start([*as_nobody, programs / "postgres", "-D", folder / kind, *settings],
                                      happy=kind == "happy", environment={"HAPPY_TRACE": str(folder / "trace")})
    for daemon in daemons.values():
        await_output(daemon, "ready to accept connections")
    return daemons, folder / "trace"


@case(seconds=150)
def serving_postgres(network):
    """pg_hba.conf with a host name."""
    daemons, trace = start_postgreses(network)

    def command(address, port):
        return ["psql", "-XAt", "-h", address, "-p", port, "-U", "postgres", "-c", "select 'let in'", "postgres"]

    def ask(what, family):
        return ask_both(network, f"postgres, {what}, {family}", daemons,
                        lambda port: command(OWN[family], port), "no pg_hba|resolved to")

    for family, address in PEERS.items():
        describe_peer(network)
        check_equal(ask("client.test", family), (0, ["let in"], []), "bare")
        describe_peer(network, honest=False)
        status, _, log = ask("who claims to be client.test", family)
        check_equal(status, 2, "bare")
        check(f'no pg_hba.conf entry for host "{address}"' in log[0], f"log: {log}")
        check('resolved to "client.test", forward lookup does not match' in log[-1], f"log: {log}")
        describe_peer(network, "other.test")
        status, _, log = ask("other.test", family)
        check_equal(status, 2, "bare")
        check('resolved to "other.test", forward lookup not checked' in log[-1], f"log: {log}")
    check_looked_up(trace)


# -- the controls --


@case(seconds=60)
def serving_is_what_helps(network):
    """The same check by a program that nothing marks as serving sees a part of the addresses; any mark mends it."""
    describe_peer(network)
    listed, of_sshd_10 = pathlib.Path("/run/lab/sshd"), pathlib.Path("/run/lab/sshd-auth")
    for path in (listed, of_sshd_10):
        shutil.copy(victim("compares")[0], path)
    addresses = list(PEERS.values())
    matches = [f"{address} client.test matches" for address in addresses]
    partial = [matches[0], f"{addresses[1]} client.test does not match"]
    for what, command, happy, environment, expected in (
            ("bare", victim("compares"), False, None, matches),
            ("unmarked", victim("compares"), True, None, partial),
            ("HAPPY_PARTIAL=0", victim("compares"), True, {"HAPPY_PARTIAL": "0"}, matches),
            ("listens", victim("compares", "-l"), True, None, matches),
            ("accepts", victim("compares", "-a"), True, None, matches),
            ("listens and accepts on AF_UNIX", victim("compares", "-u"), True, None, partial),
            ("listens on IP after that", victim("compares", "-r"), True, None, matches),
            ("called sshd", [listed], True, None, matches),
            ("called sshd-auth", [of_sshd_10], True, None, matches),
            ("called sshd, and titled", [listed, "-t"], True, None, matches)):
        run = network.run([*command, *addresses], happy=happy, environment=environment)
        check_equal((run.status, run.output.splitlines()), (0, expected), what)


@case("v6-drop")
def prober_is_left_alone(network):
    """What nmap says of an address is that address's own answer."""
    prober = pathlib.Path("/run/lab/nmap")
    shutil.copy(victim("walk")[0], prober)
    host = network.host("probed")
    run = network.run([prober, host.name, 7], happy=True, seconds=2)
    check_equal((run.status, run.output, families(network.syns(host))), (None, "", "6"), "result and SYNs")
