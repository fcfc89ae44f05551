"""A small network for tests, in namespaces that vanish with the process that made them (see topology.py).

The calling process must be the first one of `isolated_command`. Everything the lab's programs report (queries, SYNs,
accepts) comes over one pipe, so that the order of the events is the order in which they happened.
"""

import contextlib
import contextvars
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import faults
import sanitizer
import stuck
import topology
from topology import LabError, isolated_command

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = "/usr/bin/python3"  # another one may come first in PATH
LIBRARY = sanitizer.LIBRARY
TUNDELAY = ROOT / "build/tests/tundelay"
READY_SECONDS = 10  # 0.1 s on an idle machine
CASE = contextvars.ContextVar("case", default="")  # where several share a lab, each one's files begin with its name


def now_ms():
    """The clock of all events: CLOCK_MONOTONIC."""
    return time.monotonic() * 1000


def obstacle(programs=()):
    """Why no lab can run here, in one line; None if it can. `programs` are what it will be asked to run."""
    if not TUNDELAY.exists():
        return f"{TUNDELAY} is not built: run make lab"
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    absent = [name for name in ("ip", "nft", "setpriv", "unshare", *programs) if not shutil.which(name, path=path)]
    if absent:
        return f"not installed: {' '.join(absent)} (scripts/install-packages installs what is missing)"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun cannot be opened: run as root, on a machine that has TUN devices"
    tried = subprocess.run(isolated_command(["true"], os.geteuid() != 0), capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"no private namespaces here: {tried.stderr.strip()}"
    return None


@dataclasses.dataclass
class Host:
    """A name of the lab with its addresses as they stand in DNS."""

    name: str
    ipv6: list
    ipv4: list

    def addresses(self):
        """All, IPv6 first."""
        return self.ipv6 + self.ipv4


@dataclasses.dataclass
class Run:
    """How a program ended; `status` is None if it was cut off."""

    status: int
    output: str
    started_ms: float
    ended_ms: float

    def seconds(self):
        """Wall time."""
        return (self.ended_ms - self.started_ms) / 1000


class Program:
    """A program running in the client. A thread waits for it, so that its end is timed exactly."""

    def __init__(self, command, environment, stdin, output_path):
        self.output_path = output_path
        self.trace = output_path.with_suffix(".trace")  # if it is traced
        self.must_end = False  # if it is cut off, NAME.stuck tells what its threads were doing
        with open(output_path, "wb") as output:
            self.started_ms = now_ms()
            self._process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True)
        self._ended_ms = None
        self._waiter = threading.Thread(target=self._wait_for_end, daemon=True)
        self._waiter.start()
        if stdin is not None:  # else it stays open, and silent
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(stdin)
                self._process.stdin.close()

    def _wait_for_end(self):
        self._process.wait()
        self._ended_ms = now_ms()

    def ended_within(self, seconds):
        """Whether it has ended so many seconds after its start; waits until that is known."""
        self._waiter.join(max((self.started_ms - now_ms()) / 1000 + seconds, 0))
        return not self._waiter.is_alive()

    def wait(self, seconds):
        """Its end, or the cut-off after so many seconds from its start."""
        ended = self.ended_within(seconds)
        if not ended:
            if self.must_end:
                self.output_path.with_suffix(".stuck").write_text(stuck.describe(self._process.pid), encoding="utf-8")
            with contextlib.suppress(ProcessLookupError):  # it may end just now
                os.killpg(self._process.pid, signal.SIGKILL)
            self._waiter.join()
        output = self.output_path.read_text(encoding="utf-8", errors="replace")
        return Run(self._process.returncode if ended else None, output, self.started_ms, self._ended_ms)


class Lab:
    """The network; ready when the constructor returns."""

    def __init__(self, folder, *fault_names, nameservers=topology.NAMESERVERS[:1], client_settings=None):
        self.folder = pathlib.Path(folder)
        self.fault = faults.combine(fault_names)
        self.events = []
        self._changed = threading.Condition()
        self._lock = threading.RLock()  # of what follows: cases that share a lab run in threads
        self._zone, self._hosts, self._programs = {}, 0, 0
        self._daemons = []
        if os.getpid() != 1:
            raise LabError("not in private namespaces: start with isolated_command")
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.fault.dead_nameserver:
            nameservers = (topology.DEAD_NAMESERVER, *nameservers)
        topology.make_private_files(nameservers)
        topology.make_network(self.fault, client_settings or {})
        self._make_client_firewall()
        self._write_zone()
        self._start_daemons()

    # -- set-up --

    def _make_client_firewall(self):
        if self.fault.client_rules:
            rules = "\n".join(("type filter hook output priority 0;", *self.fault.client_rules))
            topology.call("ip", "netns", "exec", "c", "nft", "-f", "-",
                          stdin=f"table inet lab {{\nchain output {{\n{rules}\n}}\n}}\n")

    def _start_daemons(self):
        read_end, self._pipe = os.pipe()
        threading.Thread(target=self._read_events, args=(read_end,), daemon=True).start()
        self.start_daemon("r", TUNDELAY, "ta", "tb", *topology.wire_rules(self.fault))
        self.start_daemon("s", PYTHON, "-IS", HERE / "dns_server.py", "/run/lab/zone.json", *topology.NAMESERVERS)
        self.start_daemon("s", PYTHON, "-IS", HERE / "tcp_server.py", "s")
        self.wait_ready()

    def start_daemon(self, namespace, *command):
        """Starts a program that reports JSON lines on stdout, the first of them {"event": "ready"}."""
        with open(self.folder / "daemons.stderr", "ab") as errors:
            self._daemons.append(subprocess.Popen(
                ["ip", "netns", "exec", namespace, *map(str, command)], stdin=subprocess.DEVNULL, stdout=self._pipe,
                stderr=errors))

    def wait_ready(self):
        """Returns when every daemon has said that it is ready."""
        try:
            self.wait_for(lambda: len(self.find("ready")) == len(self._daemons), READY_SECONDS)
        except LabError:
            errors = (self.folder / "daemons.stderr").read_text(encoding="utf-8").strip()
            raise LabError(f"a daemon of the lab did not start: {errors or 'no message'}") from None

    # -- names --

    def host(self, label, addresses=None):
        """A new name, with addresses as the faults have them, or with those given, in DNS at once."""
        with self._lock:
            self._hosts += 1
            number = self._hosts
            if number > topology.MAX_HOSTS:
                raise LabError(f"more than {topology.MAX_HOSTS} names in one lab")
            if addresses is None:
                kinds = self.fault.endpoints or ("live6", "live4")
                addresses = [topology.ADDRESSES[kind](number + kinds[:place].count(kind) * topology.STRIDE)
                             for place, kind in enumerate(kinds)]
            name = f"{label}{number if CASE.get() else ''}.test"
            host = Host(name, [a for a in addresses if ":" in a], [a for a in addresses if ":" not in a])
            self._zone[name] = {
                "AAAA": {"records": host.ipv6, **self.fault.answers.get("AAAA", {})},
                "A": {"records": host.ipv4, **self.fault.answers.get("A", {})},
            }
            self._write_zone()
            return host

    def set_record(self, name, record_type, **rule):
        """Changes what the DNS server does with one name and type (see dns_server.py)."""
        with self._lock:
            self._zone.setdefault(name, {})[record_type] = rule
            self._write_zone()

    def set_records(self, zone):
        """The same for many: what is below the type below the name."""
        with self._lock:
            for name, types in zone.items():
                self._zone.setdefault(name, {}).update(types)
            self._write_zone()

    def _write_zone(self):
        new = pathlib.Path("/run/lab/zone.new")  # renamed, so that no query sees half a zone
        new.write_text(json.dumps(self._zone), encoding="ascii")
        new.rename("/run/lab/zone.json")

    # -- programs --

    def start(self, command, happy=False, by_happy_run=False, trace=True, stdin=b"", environment=None, namespace="c"):
        """Starts a program in the client, bare or with libhappy; traces go to the lab's folder."""
        with self._lock:
            self._programs += 1
            name = f"{CASE.get()}{'-' if CASE.get() else ''}{self._programs:02}-{os.path.basename(command[0])}"
        inner = {}
        if happy and not os.path.exists(LIBRARY):
            raise LabError(f"{LIBRARY} is not built: run make")
        if happy and trace:
            inner["HAPPY_TRACE"] = str(self.folder / f"{name}.trace")
        if happy and CASE.get():
            # Many programs start at once: an answer that is late for that is not to count as one.
            inner["HAPPY_RESOLUTION_DELAY_MS"] = "1000"
        if happy and not by_happy_run:
            inner.update(sanitizer.preload(LIBRARY))
        inner.update(sanitizer.options(self.folder / name, command[0]))
        # Innermost: set further out, the library would be loaded into `ip` too.
        settings = [f"{key}={value}" for key, value in {**inner, **(environment or {})}.items()]
        wrapper = [str(ROOT / "scripts/happy-run")] if by_happy_run else []
        outer = {"PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": topology.HOME, "LANG": "C",
                 "TERM": "dumb"}
        return Program(["ip", "netns", "exec", namespace, "env", *settings, *wrapper, *map(str, command)], outer, stdin,
                       self.folder / f"{name}.out")

    def run(self, command, seconds=20, must_end=False, **options):
        """Runs a program to its end or the cut-off."""
        program = self.start(command, **options)
        program.must_end = must_end
        return program.wait(seconds)

    # -- events --

    def _read_events(self, read_end):
        with open(read_end, encoding="ascii") as lines, open(self.folder / "events", "w", encoding="ascii") as log:
            for line in lines:
                log.write(line)
                log.flush()
                with self._changed:
                    self.events.append(json.loads(line))
                    self._changed.notify_all()

    def wait_for(self, condition, seconds):
        """Returns when `condition()`, looked at after each event, is true; LabError if that takes too long."""
        with self._changed:
            if not self._changed.wait_for(condition, seconds):
                raise LabError(f"nothing came for {seconds} s")

    def sync(self):
        """Returns when everything reported so far is in `events`."""
        marker = f"{now_ms()} {threading.get_ident()}"
        os.write(self._pipe, (json.dumps({"event": "marker", "text": marker}) + "\n").encode())
        self.wait_for(lambda: self.find("marker", text=marker), READY_SECONDS)

    def find(self, event, **fields):
        """The events of this kind with these fields, as far as they have come."""
        return [e for e in self.events
                if e["event"] == event and all(e.get(key) == value for key, value in fields.items())]

    def stood_still_ms(self, since_ms):
        """The longest time since then for which the machine let the lab's wire wait; 0 on a quiet one."""
        return max((e["ms"] for e in self.find("standstill") if e["time_ms"] > since_ms), default=0)

    def syns(self, host):
        """First SYNs (no retransmissions) to the host's addresses, in order."""
        self.sync()
        first = {}
        for syn in self.find("syn"):
            if syn["address"] in host.addresses():
                first.setdefault((syn["source"], syn["source_port"], syn["address"]), syn)
        return list(first.values())

    def accepts(self, host):
        """Accepted connections to the host's addresses, in order."""
        self.sync()
        return [accept for accept in self.find("accept") if accept["address"] in host.addresses()]

    def wait_accepts(self, host, count, seconds=5):
        """accepts(host) once there are `count`: a program may end before the last packet of its handshake has arrived."""
        self.wait_for(lambda: len([a for a in self.find("accept") if a["address"] in host.addresses()]) >= count, seconds)
        return self.accepts(host)

    def wait_end(self, accept, seconds=5):
        """The event of the connection's end, waited for."""
        self.wait_for(lambda: self.find("end", id=accept["id"], where=accept["where"]), seconds)
        return self.find("end", id=accept["id"], where=accept["where"])[0]
