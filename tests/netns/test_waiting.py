"""Programs that wait for a non-blocking connect() cannot tell that it was raced: whichever way they wait, they see the
events that the kernel shows, up to the first that tells the outcome, and its SO_ERROR."""

import re

import hardening
import pivot
from cases import REGISTRY, Case, check, families, report, victim

PORT = 25  # speaks first
STYLES = ("poll-out", "poll-in", "poll-in-many", "poll-all", "poll-in-handler", "ppoll", "poll-chk", "ppoll-chk", "select", "select-in",
          "pselect", "epoll-level", "epoll-in", "epoll-edge", "epoll-oneshot", "epoll-exclusive", "epoll-level-before",
          "epoll-edge-before", "epoll-oneshot-before", "epoll-two", "epoll-nested", "epoll-modified", "epoll-modified-raw",
          "dup-before-poll", "dup-before-epoll", "dup-during-poll", "dup-during-late-poll", "dup-during-epoll",
          "epoll-pwait", "epoll-pwait2", "sigio", "sigio-info")
LIVE4 = ["198.51.100.120"]
# faults -> (addresses at which bare is compared: the one that wins, or those of the fault; most ms until the event)
FAULTS = {
    ("v6-drop",): (LIVE4, 600),
    ("first-address-dead",): (LIVE4, 1150),
    ("v6-reset",): (None, None),
    ("all-dead",): (None, None),
    # The program is handed IPv6 alone, which fails at once: IPv4 must win unseen. Or nothing can.
    ("v6-reset", "a-late=300"): (LIVE4, 700),
    ("all-reset", "a-late=300"): (None, None),
}
NO_SERVER = (("all-dead",), ("all-reset", "a-late=300"))
ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}  # a dead address takes 3 s
AT_ONCE = 7  # programs at a time: their times are compared


def first_outcome(run):
    """What was seen at the first address: the line with the events."""
    line = run.output.splitlines()[0] if run.output else f"nothing printed, status {run.status}"
    # On a busy machine the server's first words are there when a program wakes that wanted to read, too.
    return re.sub(r"\b5\b", "4", line) if line.endswith("so_error 0") else line


# Only the A answer is late, and the winner cannot be put in place: the socket gets an attempt of its own in mid-race.
LIFTED = ("a-late=150",)
FAULTS_AND_LIFTED = {**FAULTS, LIFTED: (None, 900)}


def styles(network, threads, faults, environment=None):
    """Every way of waiting, bare and with libhappy."""
    alone, limit_ms = FAULTS_AND_LIFTED[faults]
    fault, served = ", ".join(faults), faults not in NO_SERVER
    reference = network.host("bare", addresses=alone)
    failures = []
    for begin in range(0, len(STYLES), AT_ONCE):
        started = []
        for style in STYLES[begin:begin + AT_ONCE]:
            host = network.host(style)
            started.append((style, host, network.start(victim("waiting", style, threads, reference.name, PORT)),
                            network.start(victim("waiting", style, threads, host.name, PORT), happy=True,
                                          trace=hardening.TRACE, environment=environment)))
        for style, host, *programs in started:
            bare, happy = (program.wait(15) for program in programs)
            wanted, seen = first_outcome(bare), first_outcome(happy)
            took_ms = float(report(happy).get("took_ms", "99999"))
            troubles = []
            if seen != wanted:
                troubles.append(f"saw {seen!r}, the kernel shows {wanted!r}")
            if limit_ms and took_ms > limit_ms:
                troubles.append(f"took {took_ms:.0f} ms")
            if served and happy.status != 0:
                troubles.append(f"status {happy.status} ({happy.output!r})")
            if served and not families(network.accepts(host)):
                troubles.append("no connection")
            pivot.tell(f"waiting, {'one thread' if threads == 1 else 'two threads'}", style, fault,
                       f"{seen}{f', {took_ms:.0f} ms' if limit_ms else ''}{' WRONG' if troubles else ''}")
            if troubles:
                failures.append(f"{style}: " + ", ".join(troubles))
    check(not failures, "; ".join(failures))


NODE = """
const s = require('net').connect(25, process.argv[1]);
for (const e of ['connect', 'ready', 'timeout', 'end']) s.on(e, () => console.log(e, s.remoteFamily));
s.on('error', e => console.log(e.code, e.syscall));
s.on('close', failed => console.log('close', failed));
s.on('data', d => { console.log(String(d).slice(0, 3)); s.destroy(); });
"""


def node(network, faults):
    """libuv, by epoll and by io_uring: the events that a program sees."""
    reference, failures = network.host("bare", addresses=FAULTS[faults][0]), []
    for ring in ("0", "1"):
        host = network.host(f"ring{ring}")
        bare, happy = (program.wait(20) for program in [network.start(
            ["node", "--no-network-family-autoselection", "-e", NODE, name.name], happy=name is host,
            environment={"UV_USE_IO_URING": ring}) for name in (reference, host)])
        equal = (bare.status, bare.output) == (happy.status, happy.output)
        pivot.tell("waiting, node", f"UV_USE_IO_URING={ring}", ", ".join(faults),
                   f"{' '.join(happy.output.split())}{'' if equal else ' WRONG'}")
        if not equal:
            failures.append(f"io_uring {ring}: {happy.output!r}, bare {bare.output!r}")
    check(not failures, "; ".join(failures))


for names in FAULTS:
    label = "+".join(names).replace("=", "-")
    for number in (1, 2):
        REGISTRY[f"waiting_styles.{label}.{number}"] = Case(styles, names, (number, names), seconds=60,
                                                            lab_options=ONE_RETRY)
    REGISTRY[f"waiting_node.{label}"] = Case(node, names, (names,), lab_options=ONE_RETRY)
for number in (1, 2):
    REGISTRY[f"waiting_styles.lifted.{number}"] = Case(styles, LIFTED, (number, LIFTED, {"HAPPY_FORCE": "fail:dup3"}),
                                                       seconds=60)
# Without /proc nothing tells what the sets have: it was noted. (Who goes elsewhere between its lookup and its connect()
# hears of no late answer: the lookup is to be complete.)
for number, gone in ((1, {"WAITING_ROOT": "/run", "HAPPY_PARTIAL": "0"}), (2, {"HAPPY_FORCE": "fail:proc"})):
    REGISTRY[f"waiting_styles.without_proc.{number}"] = Case(styles, ("v6-drop",), (number, ("v6-drop",), gone), seconds=60)
