"""What a test case is, and what cases say about runs. A case is a function that gets a fresh lab of its own."""

import dataclasses
from typing import Callable

import lab
import programs

VICTIMS = lab.ROOT / "build/tests/victims"
REGISTRY = {}


@dataclasses.dataclass
class Case:
    """A function with the lab it wants."""

    function: Callable
    faults: tuple
    arguments: tuple = ()
    userns: bool = False
    seconds: int = 40  # hard limit for the whole case
    lab_options: dict = dataclasses.field(default_factory=dict)

    def run(self, folder):
        """Sets the lab up and runs the function; the caller is the first process of its namespaces."""
        self.function(lab.Lab(folder, *self.faults, **self.lab_options), *self.arguments)


def case(*fault_names, userns=False, seconds=40, **lab_options):
    """Registers a function as a case under its own name."""

    def register(function):
        REGISTRY[function.__name__] = Case(function, fault_names, (), userns, seconds, lab_options)
        return function

    return register


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
    check_between((accepts[0]["time_ms"] - run.started_ms) / 1000, 0, within_s, "seconds to the server's accept()")
    check(network.wait_end(accepts[0])["bytes"] > 0, "the connection carried no data")


def check_spacing(syns, low_ms=200, high_ms=320):
    """Each SYN comes a Connection Attempt Delay after the one before it."""
    for gap in spacing_ms(syns):
        check_between(gap, low_ms, high_ms, "ms from one SYN to the next")
