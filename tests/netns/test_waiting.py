"""Programs that wait for a non-blocking connect() cannot tell that it was raced: whichever way they wait, they see the
events that the kernel shows, up to the first that tells the outcome, and its SO_ERROR."""

import re

import hardening
import pivot
from cases import REGISTRY, Case, check, families, report, victim

PORT = 25  # speaks first
STYLES = ("poll-out", "poll-in", "poll-all", "ppoll", "select", "select-in", "pselect",
          "epoll-level", "epoll-in", "epoll-edge", "epoll-oneshot", "epoll-exclusive", "epoll-level-before",
          "epoll-edge-before", "epoll-oneshot-before", "epoll-two", "epoll-nested", "epoll-modified", "dup-before-poll",
          "dup-before-epoll", "dup-during-poll", "dup-during-late-poll", "dup-during-epoll", "sigio", "sigio-info")
# fault -> (what bare is compared at: the address that wins, or the same name, most ms until the event)
FAULTS = {
    "v6-drop": ("live4", 600),
    "first-address-dead": ("live4", 1150),
    "v6-reset": (None, None),
    "all-dead": (None, None),
}
ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}  # a dead address takes 3 s
AT_ONCE = 7  # programs at a time: their times are compared


def first_outcome(run):
    """What was seen at the first address: the line with the events."""
    line = run.output.splitlines()[0] if run.output else f"nothing printed, status {run.status}"
    # On a busy machine the server's first words are there when a program wakes that wanted to read, too.
    return re.sub(r"\b5\b", "4", line) if line.endswith("so_error 0") else line


def styles(network, threads, fault):
    """Every way of waiting, bare and with libhappy."""
    alone, limit_ms = FAULTS[fault]
    reference = network.host("bare", addresses=["198.51.100.120"] if alone else None)
    failures = []
    for begin in range(0, len(STYLES), AT_ONCE):
        started = []
        for style in STYLES[begin:begin + AT_ONCE]:
            host = network.host(style)
            started.append((style, host, network.start(victim("waiting", style, threads, reference.name, PORT)),
                            network.start(victim("waiting", style, threads, host.name, PORT), happy=True,
                                          trace=hardening.TRACE)))
        for style, host, *programs in started:
            bare, happy = (program.wait(15) for program in programs)
            wanted, seen = first_outcome(bare), first_outcome(happy)
            took_ms = float(report(happy).get("took_ms", "99999"))
            troubles = []
            if seen != wanted:
                troubles.append(f"saw {seen!r}, the kernel shows {wanted!r}")
            if limit_ms and took_ms > limit_ms:
                troubles.append(f"took {took_ms:.0f} ms")
            if fault != "all-dead" and happy.status != 0:
                troubles.append(f"status {happy.status} ({happy.output!r})")
            if not families(network.accepts(host)) and fault != "all-dead":
                troubles.append("no connection")
            pivot.tell(f"waiting, {'one thread' if threads == 1 else 'two threads'}", style, fault,
                       f"{seen}{f', {took_ms:.0f} ms' if limit_ms else ''}{' WRONG' if troubles else ''}")
            if troubles:
                failures.append(f"{style}: " + ", ".join(troubles))
    check(not failures, "; ".join(failures))


for name in FAULTS:
    for number in (1, 2):
        REGISTRY[f"waiting_styles.{name}.{number}"] = Case(styles, (name,), (number, name), seconds=60,
                                                           lab_options=ONE_RETRY)
