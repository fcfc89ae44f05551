"""What a test case is, and what cases say about runs.

A case is a function that gets a lab: one of its own, or (LIGHT) one that it shares with others that want the same.
"""

import dataclasses
import json
import sys
import threading
from typing import Callable

import lab
import programs
import sanitizer

VICTIMS = lab.ROOT / "build/tests/victims"
REGISTRY = {}
# How much of the machine a case takes. LIGHT ones only wait: many run at a time, and share a lab, where they touch
# nothing but names of their own. Nothing runs beside a HEAVY one.
LIGHT, NORMAL, HEAVY = "light", "normal", "heavy"
_output = threading.Lock()


@dataclasses.dataclass
class Case:
    """A function with the lab it wants."""

    function: Callable
    faults: tuple
    arguments: tuple = ()
    userns: bool = False
    seconds: int = 40  # hard limit for the whole case
    load: str = NORMAL
    lab_options: dict = dataclasses.field(default_factory=dict)

    def make_lab(self, folder):
        """The lab, set up; the caller is the first process of its namespaces."""
        return lab.Lab(folder, *self.faults, **self.lab_options)

    def lab_key(self):
        """Equal for cases that can share a lab."""
        return repr((self.faults, self.userns, self.lab_options))


def case(*fault_names, userns=False, seconds=40, load=NORMAL, **lab_options):
    """Registers a function as a case under its own name."""

    def register(function):
        REGISTRY[function.__name__] = Case(function, fault_names, (), userns, seconds, load, lab_options)
        return function

    return register


def emit(mark, value):
    """A line for run.py, which reads what cases print: the mark, and the value as JSON."""
    with _output:
        sys.stdout.write(f"{mark}{json.dumps(value)}\n")
        sys.stdout.flush()


def case_per_program(*fault_names):
    """Registers one case for each program: FUNCTION.PROGRAM."""

    def register(function):
        for program in programs.PROGRAMS:
            REGISTRY[f"{function.__name__}.{program.name}"] = Case(function, fault_names, (program,))
        return function

    return register


def victim(name, *arguments):
    """The command line of one of the victims."""
    return [str(VICTIMS / name), *map(str, arguments)]


def report(run):
    """What a victim printed, as a dictionary."""
    return dict(line.split(" ", 1) for line in run.output.splitlines() if " " in line)


def syns_to(network, *hosts):
    """(address, port) of first SYNs to any of the hosts, in order."""
    everywhere = lab.Host("", [a for h in hosts for a in h.ipv6], [a for h in hosts for a in h.ipv4])
    return [(syn["address"], syn["port"]) for syn in network.syns(everywhere)]


def queries(network, *names):
    """(name, type) of the queries in the order in which they came, repetitions left out."""
    network.sync()
    seen = [(event["name"], event["type"]) for event in network.find("query") if not names or event["name"] in names]
    return list(dict.fromkeys(seen))


# -- claims; each raises AssertionError with what was seen --


def check(claim, text):
    """`claim` is true."""
    if not claim:
        raise AssertionError(text)


def check_equal(actual, expected, what):
    """Equal, or both are shown."""
    check(actual == expected, f"{what}: {actual!r}, not {expected!r}")


def check_between(value, low, high, what):
    """Within limits, or the value is shown."""
    check(low <= value <= high, f"{what}: {value:.3f}, not within {low} to {high}")


def families(events):
    """The families of SYNs or accepts, as in "646"."""
    return "".join("6" if ":" in event["address"] else "4" for event in events)


def spacing_ms(syns):
    """The times between one SYN and the next."""
    return [later["time_ms"] - earlier["time_ms"] for earlier, later in zip(syns, syns[1:])]


def check_connected(network, host, run, family, within_s):
    """Exactly one connection reached a server, of this family, in time from the program's start."""
    accepts = network.accepts(host)
    shown = f"{len(accepts)} connections; status {run.status}; output: {run.output.strip()[-300:]!r}"
    check(len(accepts) == 1, shown)
    check_equal(families(accepts), family, "family of the connection")
    check_between((accepts[0]["time_ms"] - run.started_ms) / 1000, 0, within_s + sanitizer.START_S,
                  "seconds to the server's accept()")
    check(network.wait_end(accepts[0])["bytes"] > 0, "the connection carried no data")


def check_spacing(syns, low_ms=200, high_ms=320):
    """Each SYN comes a Connection Attempt Delay after the one before it."""
    for gap in spacing_ms(syns):
        check_between(gap, low_ms, high_ms, "ms from one SYN to the next")
