"""The program's own attempt connects while a winner is being put in its place: what the program says by it must not be lost."""

import hardening
import lab
import sanitizer
from cases import REGISTRY, Case, check_equal, report, victim
from test_hardening_loading import compile_library

SLOW_SWAP = "/run/lab/slow_swap.so"
RTT_MS = 500  # of the program's own attempt; the winner is there after 270 ms, and the slow step is over after 870
# A program with one thread that waits for nothing has no race.
WAYS = {"none": ("poll", "select"), "threads": ("poll", "select", "write")}
# The slow step -> the family of the socket that the program must end with.
STEPS = {"filter": 6, "dup3": 4}


def overtaken(network, threads, step):
    """Whichever socket the program ends with, its token comes back by it."""
    compile_library("slow_swap.c", SLOW_SWAP)
    environment = {**sanitizer.preload(lab.LIBRARY, SLOW_SWAP), "SLOW": step}
    started = [(way, network.start(victim("overtaken", way, threads, network.host(way).name, 7), happy=True,
                                   trace=hardening.TRACE, environment=environment)) for way in WAYS[threads]]
    for way, program in started:
        run = program.wait(15)
        told = report(run)
        check_equal((told.get("said"), told.get("heard")), ("1", "1"), f"{way}: what was said, and heard ({run.output!r})")
        check_equal(6 if ":" in told["peer"] else 4, STEPS[step], f"{way}: family of the peer")


for threads in ("none", "threads"):
    for step in STEPS:
        REGISTRY[f"overtaken_{threads}_{step}"] = Case(overtaken, (f"v6-slow={RTT_MS}",), (threads, step), seconds=40)
