"""What libhappy costs where it has nothing to do: programs bare and with it, in turn, in one run.

    /usr/bin/python3 tests/bench/run.py [--strict] [--json FILE] [--list] [PATTERN ...]

Medians of interleaved runs, and the spread (half of the runs lie within) where there is one. Most of it happens in a
network of its own that is nothing but the loopback and two servers in C, so that the client is what is measured; the
short program runs in the lab as well. Exit status 1 if a goal is missed, with --strict only.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/netns"))

import lab  # pylint: disable=wrong-import-position
import topology  # pylint: disable=wrong-import-position

TOOLS = ROOT / "build/tests/bench"
SIM = ROOT / "build/sim"
EMPTY = TOOLS / "empty.so"
ENGINE = pathlib.Path(lab.LIBRARY).with_name("libhappy-engine.so")
TRUE = "/bin/true"
NAME = "bench.test"
ADDRESS4, ADDRESS6 = "198.51.100.1", "2001:db8:64::cb00:7107"
LIMIT_SECONDS = 60  # for any one program; the slowest takes 15
# ADDRESS6 as a NAT64 would have it; there is no IPv4 route to it here.
PREFIX, BEHIND = "2001:db8:64::/96", "203.0.113.7"


class BenchError(Exception):
    """Something did not run; the text is for people."""


@dataclass
class Row:
    """A line of the table. `goal` is compared with the ratio or the difference, whichever `compared` says."""

    measure: str
    bare: float
    happy: float
    unit: str
    compared: str = "difference"  # or "ratio"
    goal: float = None
    spread: float = None  # of the difference or ratio, between its quartiles

    def value(self):
        """What is compared with the goal."""
        return self.happy / self.bare if self.compared == "ratio" else self.happy - self.bare

    def met(self):
        """True, False, or None where there is no goal."""
        return None if self.goal is None else self.value() <= self.goal

    def as_dict(self):
        """For --json."""
        return {**self.__dict__, "value": self.value(), "met": self.met()}


# ---- running programs ----


def environment(preload):
    """The variables of every program that is measured."""
    variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C"}
    return {**variables, "LD_PRELOAD": str(preload)} if preload else variables


def run(command, preload=None, **variables):
    """The output of a program that must succeed."""
    done = subprocess.run([str(word) for word in command], env={**environment(preload), **variables},
                          capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
    if done.returncode:
        raise BenchError(f"{' '.join(map(str, command))}: status {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def instructions(command, preload=None):
    """Instructions of a start in user mode, the loader's too, as callgrind counts them: below it lookups are libc's."""
    with tempfile.NamedTemporaryFile(prefix="happy-bench-") as out:
        # Through env: valgrind itself must not have the library.
        setting = [f"LD_PRELOAD={preload}"] if preload else []
        words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", "--trace-children=yes",
                 "--trace-children-skip=*/env", "env", *setting, *command]
        done = subprocess.run(list(map(str, words)), env=environment(None), capture_output=True, text=True, check=False,
                              timeout=LIMIT_SECONDS)
    collected = re.findall(r"Collected : (\d+)", done.stderr)
    if done.returncode or not collected:
        raise BenchError(f"callgrind: {done.stderr.strip()[-300:]}")
    return int(collected[-1])


def alternate(rounds, preloads, command, prefix=()):
    """[wall times], [processor times] in us for each of the preloads, round by round."""
    words = [*prefix, TOOLS / "alternate", rounds, *(str(preload or "") for preload in preloads), "--", *command]
    walls, processors = ([[] for _ in preloads] for _ in range(2))
    for line in run(words).splitlines():
        which, wall, processor = line.split()
        walls[int(which)].append(float(wall))
        processors[int(which)].append(float(processor))
    return walls, processors


def paired(measure, unit, samples, compared="difference", goal=None):
    """A row from two lists of the same rounds; the spread is that of the rounds' own differences or ratios."""
    bare, happy = samples
    each = [h / b if compared == "ratio" else h - b for b, h in zip(bare, happy)]
    quartiles = statistics.quantiles(each, n=4)
    spread = quartiles[2] - quartiles[0]
    return Row(measure, statistics.median(bare), statistics.median(happy), unit, compared, goal, spread)


def fields(output, separator=" "):
    """{name: number} of lines "NAME NUMBER ...", as the C programs print them."""
    pairs = (line.split(separator, 1) for line in output.splitlines() if separator in line)
    return {name.rstrip(":"): float(rest.split()[0]) for name, rest in pairs if re.match(r"\s*\d", rest)}


def both(rounds, command, separator=" "):
    """Two lists, bare and with the library, of what the program printed."""
    results = ([], [])
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            results[which].append(fields(run(command, lab.LIBRARY if which else None), separator))
    return results


def column(results, key):
    """One number of each result."""
    return [result[key] for result in results]


def columns(results, key):
    """The same, bare and with the library."""
    return [column(side, key) for side in results]


def middle_pair(measure, results, key, compared, goal):
    """The row of the round whose difference or ratio is the median: two runs side by side have the same clock rate."""
    rows = [Row(measure, bare[key], happy[key], "ns", compared, goal) for bare, happy in zip(*results)]
    return sorted(rows, key=Row.value)[len(rows) // 2]


def system_calls(command, preload=None):
    """How many a program makes, in all its threads, the loader's too."""
    with tempfile.NamedTemporaryFile(prefix="happy-bench-") as out:
        setting = ["-E", f"LD_PRELOAD={preload}"] if preload else []
        run(["strace", "-f", "-qq", "-e", "signal=none", "-o", out.name, *setting, *command])
        return sum(1 for line in pathlib.Path(out.name).read_text(encoding="utf-8").splitlines()
                   if "resumed>" not in line and "+++" not in line)


# ---- the measures; each yields rows ----


def start_of_true(_):
    """/bin/true: what every process pays."""
    preloads = (None, EMPTY, lab.LIBRARY)
    bare, empty, happy = (instructions([TRUE], preload) for preload in preloads)
    yield Row("start of true", bare, happy, "instructions", "ratio", 1.06)
    yield Row("  an empty preloaded library", bare, empty, "instructions", "ratio")
    bare, empty, happy = (system_calls([TRUE], preload) for preload in preloads)
    yield Row("  system calls", bare, happy, "")
    yield Row("  system calls, an empty one", bare, empty, "")
    (bare, empty, happy), (cpu, _, happy_cpu) = alternate(800, preloads, [TRUE])
    yield paired("  wall time", "us", (bare, happy))
    yield paired("  wall time, an empty one", "us", (bare, empty))
    yield paired("  processor time", "us", (cpu, happy_cpu))


def short_program(network):
    """One lookup, one connect, the end."""
    host = network.host("short")
    walls, cpu = alternate(80, (None, lab.LIBRARY), [TOOLS / "client", host.name, "7", "1", "1"],
                           ["ip", "netns", "exec", "c"])
    yield paired("short program, in the lab", "us", walls, goal=1500)
    command = [TOOLS / "client", NAME, "80", "1", "1"]
    walls, cpu = alternate(300, (None, lab.LIBRARY), command)
    yield paired("short program, loopback", "us", walls, goal=1500)
    yield paired("  processor time", "us", cpu)
    yield Row("  system calls", system_calls(command), system_calls(command, lab.LIBRARY), "")


def one_more(count):
    """What the 51st to 100th of a hundred lookups and connects add, each: bare, with the library."""
    few, many = ([TOOLS / "client", NAME, "80", number_of, "1"] for number_of in ("50", "100"))
    return [(count(many, preload) - count(few, preload)) / 50 for preload in (None, lab.LIBRARY)]


def thousand(_):
    """A thousand lookups and connects in one process."""
    for threads in (1, 8):
        results = both(30, [TOOLS / "client", NAME, "80", "1000", threads])
        text = f"thousand lookups and connects, {threads} thread{'s' if threads > 1 else ''}"
        yield paired(text, "us", columns(results, "wall_us"), "ratio", 1.10)
        yield paired("  processor time", "us", columns(results, "cpu_us"), "ratio", 1.10)
    yield Row("  system calls of one more", *one_more(system_calls), "")


def lookups(network):
    """getaddrinfo() alone, against glibc's: names asked for the first time, and one of them again and again."""
    for i in range(21):
        network.host(f"n{i}.lookup")
    in_lab = ("ip", "netns", "exec", "c")
    for place, command in (("RTT 1 ms", [*in_lab, TOOLS / "lookups", "lookup.test", "20"]),
                           ("loopback", [TOOLS / "lookups", NAME, "200"])):
        results = both(15, command)
        for kind, goal in (("cold", 1.2), ("repeated", 0.2)):
            goal = None if place == "loopback" else goal  # where glibc's own query takes no time
            yield paired(f"lookup, {kind}, {place}", "us", columns(results, f"{kind}_us"), "ratio", goal)
            yield paired("  processor time", "us", columns(results, f"{kind}_cpu_us"), "ratio", goal)


def stdio(_):
    """What a program would pay for good if a second thread had ever been made."""
    results = both(15, [TOOLS / "client", NAME, "80", "1", "1", "stdio"])
    for key, text in (("putc", "putc() after a healthy connect"), ("malloc", "malloc() and free() after it")):
        yield middle_pair(text, results, f"{key}_ns", "ratio", 1.05)  # 1, and 5 % for the machine's own noise


def at_rest(_):
    """Hooked calls that libhappy has nothing to do with."""
    for title, words in (("at rest", []), ("engine loaded", [NAME])):
        results = both(15, [TOOLS / "at_rest", *words], "\t")
        for key in results[0][0]:
            goal = 20 if key in ("getsockopt", "close", "epoll_ctl", "poll") else 10
            best = [min(side) for side in columns(results, key)]  # what disturbs a run only adds to it
            yield Row(f"{title}: {key}", *best, "ns", "difference", goal)
    # A lookup has been made: connect() asks the kernel whether the address can be read at all.
    yield Row("  lower bound for connect: one system call", 0, min(column(results[0], "syscall")), "ns")


def non_blocking(network):
    """connect() without blocking, until the socket can be written to, in a healthy network."""
    rows = (("loopback", NAME, "80", (), "difference", 15),
            ("RTT 1 ms", network.host("pending").name, "7", ("ip", "netns", "exec", "c"), "ratio", 1.03))
    for place, name, port, prefix, compared, goal in rows:
        bare, happy = both(25, [*prefix, TOOLS / "pending", name, port, "100"])
        best = [min(column(results, "connected_us")) for results in (bare, happy)]  # the lab's delay line has hiccups
        yield Row(f"non-blocking connect, {place}", *best, "us", compared, goal)


def literals(_):
    """Connects to IPv4 literals: by a NAT64 against IPv6 itself, both with the library; and where there is IPv4."""
    count, rounds = 500, 20
    results = ([], [])
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            command = [TOOLS / "client", (ADDRESS6, BEHIND)[which], "80", count, "1"]
            results[which].append(fields(run(command, lab.LIBRARY, HAPPY_PREF64=PREFIX)))
    plain = both(rounds, [TOOLS / "client", ADDRESS4, "80", count, "1"])
    for text, found, goal in (("literal connect, NAT64 against IPv6", results, 60),
                              ("literal connect, dual stack", plain, 1)):
        for measure, key in ((text, "wall_us"), ("  processor time", "cpu_us")):
            each = [[total / count for total in side] for side in columns(found, key)]
            yield paired(measure, "us", each, goal=goal)


def hand_over(_):
    """A winner put behind the program's socket, which is one of ten in an epoll set, as the trace tells it."""
    topology.call("nft", "add table ip6 slow; add chain ip6 slow out { type filter hook output priority 0; }; "
                  "add rule ip6 slow out tcp dport 80 tcp flags syn / fin,syn,rst,ack drop")
    took = []
    with tempfile.NamedTemporaryFile(prefix="happy-bench-") as trace:
        for _ in range(15):
            run([TOOLS / "pending", NAME, "80", "1", "9"], lab.LIBRARY, HAPPY_TRACE=trace.name,
                HAPPY_CONNECTION_ATTEMPT_DELAY_MS="100")
        events = [json.loads(line) for line in pathlib.Path(trace.name).read_text(encoding="utf-8").splitlines()]
    topology.call("nft", "delete table ip6 slow")
    won = {}
    for event in events:
        if event["event"] == "winner":
            won[event["pid"]] = event["time_ms"]
        if event.get("reason") == "handed over":
            took.append((event["time_ms"] - won[event["pid"]]) * 1000)
    if len(took) < 15:
        raise BenchError(f"{len(took)} of 15 races were handed over")
    yield paired("hand-over, a line of trace within", "us", ([0.0] * len(took), took), goal=60)


SRV_CLIENT = """
import socket, sys, time
began = time.monotonic()
for target in sys.argv[1:]:
    try:
        socket.create_connection(target.split("/"))
        break
    except OSError:
        pass
print("connect_ms", (time.monotonic() - began) * 1000)
"""


def give_up_syns_after(retries):
    """How often the lab's client repeats a SYN: 1 is 3 s, the kernel's own 6 are 131 s."""
    topology.call("ip", "netns", "exec", "c", "sysctl", "-qw", f"net.ipv4.tcp_syn_retries={retries}")


def srv_targets(network):
    """SRV with four dual-stack targets, the first priority silent, against one target after the other (RFC 6120)."""
    # SYNs are given up early where bare is measured: it waits four times for the kernel to do so.
    hosts = [network.host(label, [topology.ADDRESSES[f"{kind}{family}"](number) for family in (6, 4)])
             for label, kind, number in (("one", "dead", 20), ("two", "dead", 21), ("three", "live", 30),
                                         ("four", "live", 31))]
    network.set_record("_xmpp-client._tcp.srv.test", "SRV", records=[
        f"{priority} 1 7 {host.name}" for host, priority in zip(hosts, (0, 0, 5, 5))])
    network.set_record("srv.test", "A", records=[])

    def took(*targets, preload=None):
        command = ["ip", "netns", "exec", "c", lab.PYTHON, "-IS", "-c", SRV_CLIENT, *targets]
        return fields(run(command, preload))["connect_ms"]

    give_up_syns_after(1)
    bare = took(*(f"{host.name}/7" for host in hosts))
    happy = took("srv.test/xmpp-client", preload=lab.LIBRARY)
    best = took(f"{hosts[2].name}/7")
    give_up_syns_after(6)
    patient = took("srv.test/xmpp-client", preload=lab.LIBRARY)
    yield Row("SRV, first priority silent for 3 s", bare, happy, "ms", "ratio", 0.5)
    yield Row("  against a target known to live", best, happy, "ms")
    yield Row("  the same, silent for ever", best, patient, "ms", "difference", 11500)


def memory(_):
    """/proc/self/smaps_rollup after one lookup and connect."""
    results = both(9, [TOOLS / "client", NAME, "80", "1", "1", "memory"])
    for side in results:
        for result in side:
            result["Private"] = result["Private_Clean"] + result["Private_Dirty"]
    yield paired("memory after one lookup: Rss", "KiB", columns(results, "Rss"), goal=1024)
    for key in ("Pss", "Private", "Anonymous"):
        yield paired(f"  {key}", "KiB", columns(results, key))


def sizes(_):
    """The files, without debugging information, and what the loader has to do for them."""
    for path in (pathlib.Path(lab.LIBRARY), ENGINE):
        with tempfile.TemporaryDirectory() as folder:
            stripped = pathlib.Path(folder, "stripped")
            run(["strip", "-o", stripped, path])
            yield Row(f"size of {path.name}", 0, stripped.stat().st_size / 1024, "KiB")
        kinds = re.findall(r"R_X86_64_(\w+)|R_AARCH64_(\w+)", run(["readelf", "-rW", path]))
        names = ["".join(kind) for kind in kinds]
        yield Row("  relocations", 0, len(names), "")
        found = [name for name in names if "RELATIVE" not in name and "TP" not in name]
        yield Row("  of them symbols to be found at load", 0, len(found), "")


def race(_):
    """Order, plan and race of one name, nothing of which answers."""
    for line in run([SIM, "--cost"]).splitlines():
        endpoints, took = line.split()
        yield Row(f"order, plan and race of {endpoints} endpoints", 0, float(took), "us", goal=20 if endpoints == "20" else None)


MEASURES = (race, start_of_true, short_program, thousand, lookups, non_blocking, literals, hand_over, srv_targets,
            stdio, at_rest, memory, sizes)


# ---- the network, and the processes around ----


def start_servers():
    """The loopback of this namespace, which is not the lab's, with a nameserver and a web server."""
    topology.call("ip", "link", "set", "lo", "up")
    for address in (f"{ADDRESS4}/32", f"{topology.NAMESERVERS[0]}/32", f"{ADDRESS6}/128"):
        topology.call("ip", "addr", "add", address, "dev", "lo", *(["nodad"] if ":" in address else []))
    servers = subprocess.Popen(  # pylint: disable=consider-using-with
        [TOOLS / "servers", ADDRESS4, ADDRESS6, topology.NAMESERVERS[0]], stdout=subprocess.PIPE)
    if servers.stdout.readline() != b"ready\n":
        raise BenchError("the servers did not start")


def tell(started, text):
    """A line of progress."""
    print(f"{time.monotonic() - started:5.1f} s  {text}", file=sys.stderr, flush=True)


def inside(folder, names):
    """The first process of the namespaces."""
    network = lab.Lab(folder, "rtt=1")
    start_servers()
    rows, started = [], time.monotonic()
    for measure in MEASURES:
        if measure.__name__ not in names:
            continue
        tell(started, f"{measure.__name__}: {measure.__doc__}")
        rows += [row.as_dict() for row in measure(network)]
    tell(started, "done")
    (folder / "rows").write_text(json.dumps(rows), encoding="utf-8")


def number(value, sign=""):
    """As many digits as mean something."""
    return f"{value:{sign},.0f}" if abs(value) >= 100 or value == int(value) else f"{value:{sign}.2f}"


def show(rows):
    """The table."""
    line = "{:44}{:>11}{:>14}  {:13}{:>10}{:>9}{:>8}  {}"
    print(line.format("measure", "bare", "with libhappy", "unit", "more", "spread", "goal", "met"))
    for row in rows:
        value, spread, goal = row["value"], row["spread"], row["goal"]
        if row["compared"] == "ratio":
            shown = [f"x {value:.3f}", *("" if v is None else f"{v:.3f}" for v in (spread, goal))]
        else:
            shown = [number(value, "+"), *("" if v is None else number(v) for v in (spread, goal))]
        met = {None: "", True: "yes", False: "NO"}[row["met"]]
        print(line.format(row["measure"], number(row["bare"]), number(row["happy"]), row["unit"], *shown, met).rstrip())


def obstacle():
    """Why nothing can be measured here, or None."""
    unbuilt = [str(path) for path in (pathlib.Path(lab.LIBRARY), ENGINE, TOOLS / "client") if not path.exists()]
    if unbuilt:
        return f"not built: {' '.join(unbuilt)} (make bench builds them)"
    return lab.obstacle(("valgrind", "strace", "readelf", "strip"))


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("patterns", metavar="PATTERN", nargs="*", help="take the measures whose name contains this")
    parser.add_argument("--strict", action="store_true", help="exit status 1 if a goal is missed")
    parser.add_argument("--json", metavar="FILE", help="writes the table into FILE too")
    parser.add_argument("--list", action="store_true", help="only name the measures")
    parser.add_argument("--inside", nargs=2, metavar=("FOLDER", "NAMES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        status = 0
        try:
            inside(pathlib.Path(arguments.inside[0]), arguments.inside[1].split(","))
        except (BenchError, lab.LabError, OSError, subprocess.TimeoutExpired) as error:
            print(f"bench: {error}", file=sys.stderr, flush=True)
            status = 1
        os._exit(status)  # the first process of the namespaces: all others end with it
    names = [measure.__name__ for measure in MEASURES if not arguments.patterns or any(
        pattern in measure.__name__ or fnmatch.fnmatch(measure.__name__, pattern) for pattern in arguments.patterns)]
    if arguments.list or not names:
        print("\n".join(f"{measure.__name__:16} {measure.__doc__}" for measure in MEASURES))
        return 0 if arguments.list else 2
    if trouble := obstacle():
        print(f"bench: {trouble}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="happy-bench-") as folder:
        command = lab.isolated_command([lab.PYTHON, __file__, "--inside", folder, ",".join(names)], os.geteuid() != 0)
        if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode:
            return 1
        rows = json.loads(pathlib.Path(folder, "rows").read_text(encoding="utf-8"))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    show(rows)
    missed = [row["measure"].strip() for row in rows if row["met"] is False]
    print(f"{sum(row['met'] is True for row in rows)} goals met, {len(missed)} missed")
    return 1 if missed and arguments.strict else 0


if __name__ == "__main__":
    sys.exit(main())
