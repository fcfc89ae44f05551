"""The sweep of the "Lazy Eye" study: one answer is late by 0 to 1000 ms; when does a client go on without it?

HAPPY_SWEEP=1 in the environment makes it whole, in steps of 10 ms: make netns ARGS=sweep
"""

import os
import statistics

import programs
from cases import case, check, check_between, check_equal, families
from lab import Host

WHOLE = os.environ.get("HAPPY_SWEEP") == "1"
RESOLUTION_DELAY_MS = 50
BACK_MS = 1  # from the nameserver to the client


def delays():
    """The delays of the sweep, in ms; the short one leaves out where noise would decide."""
    if WHOLE:
        return range(0, 1001, 10)
    return (0, 10, 20, *range(100, 1000, 100))


def first_syn(network, late, delay_ms):
    """(family of the first SYN, ms from the prompt answer to it) of a wget whose answer of type `late` is late."""
    # Not Lab.host(): a whole sweep has more names than that has addresses for.
    host = Host(f"{late.lower()}-{delay_ms}.test", [f"2001:db8:2::{delay_ms + 1:x}"], ["198.51.100.7"])
    for kind, found in (("AAAA", host.ipv6), ("A", host.ipv4)):
        network.set_record(host.name, kind, records=found, delay_ms=delay_ms if kind == late else 0)
    run = network.run(programs.find("wget").command(host), happy=True)
    prompt = "A" if late == "AAAA" else "AAAA"
    asked_ms = network.find("query", name=host.name, type=prompt)[0]["time_ms"]
    syn = next(syn for syn in network.syns(host) if syn["time_ms"] >= run.started_ms)
    return families([syn]), syn["time_ms"] - asked_ms - BACK_MS


# spec: ANSWER-2 ANSWER-3 CONFIG-1
@case(seconds=300)
def sweep_aaaa(network):
    """AAAA late: IPv6 as long as it comes within the Resolution Delay, IPv4 at its end otherwise."""
    waits = []
    for delay_ms in delays():
        family, waited_ms = first_syn(network, "AAAA", delay_ms)
        if delay_ms <= RESOLUTION_DELAY_MS - 20:
            check_equal(family, "6", f"family with AAAA {delay_ms} ms late")
        elif delay_ms >= RESOLUTION_DELAY_MS + 30:
            check_equal(family, "4", f"family with AAAA {delay_ms} ms late")
            waits.append(waited_ms)
    nine = [statistics.median(waits[i::9]) for i in range(9)]
    print(f"Resolution Delay, nine medians: {' '.join(f'{w:.1f}' for w in sorted(nine))} ms")
    check_between(statistics.median(nine), RESOLUTION_DELAY_MS - 15, RESOLUTION_DELAY_MS + 15, "median Resolution Delay")


# spec: ANSWER-2
@case(seconds=300)
def sweep_a(network):
    """A late: a working AAAA never waits for it longer than the moment that makes lists whole."""
    waits = []
    for delay_ms in delays():
        family, waited_ms = first_syn(network, "A", delay_ms)
        check_equal(family, "6", f"family with A {delay_ms} ms late")
        waits.append(waited_ms)
    check_between(statistics.median(waits), 0, RESOLUTION_DELAY_MS / 2 + 15, "median ms from AAAA to the first SYN")
    check(max(waits) < 150, f"the longest wait was {max(waits):.0f} ms")


# spec: CONFIG-1
@case("aaaa-late=500")
def resolution_delay_knob(network):
    """HAPPY_RESOLUTION_DELAY_MS is the delay."""
    for delay_ms in (0, 25, 200):
        host = network.host(f"knob{delay_ms}")
        network.run(programs.find("wget").command(host), happy=True,
                    environment={"HAPPY_RESOLUTION_DELAY_MS": str(delay_ms)})
        asked_ms = network.find("query", name=host.name, type="A")[0]["time_ms"]
        check_between(network.syns(host)[0]["time_ms"] - asked_ms - BACK_MS, delay_ms - 5, delay_ms + 45, "ms waited")
