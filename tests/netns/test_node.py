"""Clients of Node from the npm registry, with and without io_uring, bare and with libhappy."""

import hardening
import lab
import sanitizer
from cases import REGISTRY, Case, check, check_equal

CLIENTS = ("undici", "ws", "pg", "mysql2", "redis")
FOLDER = lab.ROOT / "build/tests/node"
SETTINGS = {"": {}, "_io_uring": {"UV_USE_IO_URING": "1"}}
PATIENCE_S = 8
SLACK_S = 0.3 + sanitizer.START_S
# The longest that an exchange may take, in s: three round trips and what the fault costs a blocking program.
LIMITS = {"healthy": 0.15, "v6-drop": 0.45, "first-address-dead": 0.95, "aaaa-silent": 0.25, "v6-reset": 0.25}


def exchange_ms(program, seconds):
    """What clients.js said: as expected, and after how long; None if it was cut off."""
    run = program.wait(seconds)
    if run.status is None:
        return None
    words = run.output.split()
    check_equal((run.status, words[:2]), (0, ["as", "expected"]), f"outcome (output {run.output[-300:]!r})")
    return int(words[2])


def exchange(network, fault, variant):
    """Each says its word, in the time of a blocking program, and no later than bare."""
    check((FOLDER / "node_modules").is_dir(), f"{FOLDER} is not there: make node-clients")
    for client in CLIENTS:
        bare, happy = (network.start(["node", FOLDER / "clients.js", client, network.host(f"{client}-{kind}").name],
                                     happy=kind == "happy", environment=SETTINGS[variant]) for kind in ("bare", "happy"))
        ms = exchange_ms(happy, PATIENCE_S)
        # Bare, Node waits for a lost AAAA as long as libc does: not to the end here.
        bare_ms = exchange_ms(bare, 1.5 if fault == "aaaa-silent" else PATIENCE_S)
        check(ms is not None, f"{client}: no result after {PATIENCE_S} s")
        hardening.tell(f"node {client}{variant}, {fault}", "no result" if bare_ms is None else f"{bare_ms} ms", f"{ms} ms",
                       True)
        check(bare_ms is None or ms < bare_ms + 1000 * SLACK_S, f"{client}: {ms} ms, bare {bare_ms} ms")
        check(ms < 1000 * (LIMITS[fault] + SLACK_S), f"{client}: {ms} ms (bare {bare_ms})")


for fault in LIMITS:
    for variant in SETTINGS:
        REGISTRY[f"node_clients{variant}.{fault}"] = Case(exchange, (fault,), (fault, variant), seconds=90)
