"""Calls of connect() that end before their time: as bare, and nothing is touched afterwards."""

import os

import hardening
import sanitizer
from cases import HEAVY, LIGHT, REGISTRY, Case, case, check, check_equal, victim

# One dead address takes 3 s.
ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}
EARLY_MS, LATE_MS = 120, 700  # before the first hidden attempt, and after it
AT_ONCE_MS = 2  # within the first tick of the kernel's clock


WHO = {"alone": (), "threads": ("-t",), "nodefer": ("-n",)}  # the victim's option


def leave(network, how, after_ms, who, label):
    """Both runs end in the same way; the network hears nothing of the lookup afterwards."""
    def command(host):
        return victim("left", *WHO[who], how, after_ms, host.name, 7)

    item = f"connect() left: {how} after {after_ms} ms, {who}, {label}"
    # Where all fail, the last attempt began 250 ms after the first, and fails so much later.
    hosts, _, happy = hardening.compare(network, item, command, slack_s=0.6 if label == "dead" else hardening.SLACK_S)
    hardening.check_quiet_after(network, hosts[1], float(hardening.said(happy, "at_left")))


# What happens, and in which networks: dead; IPv6 completes late, so that a socket that was left connects by itself, as
# it does bare; IPv4 completes after the program has left, so that a hidden attempt would win.
NETWORKS = (("dead", ("all-dead",)), ("slow", ("v6-slow=1600", "v4-drop")), ("winner", ("v6-drop", "v4-slow=900")))
for how in ("eintr", "restart", "mixed-eintr", "mixed-restart", "once", "closing", "sndtimeo", "sndtimeo-restart", "jump",
            "jump-restart", "mixed-jump", "close", "pair", "dup2", "shutdown", "disconnect",
            "disconnect-dup", "twice"):
    for after_ms in (EARLY_MS, LATE_MS):
        for who in WHO:
            for label, faults in NETWORKS:
                if label == "winner" and how in ("restart", "mixed-restart"):
                    continue  # goes on, and is won
                if label != "slow" and how == "twice":
                    continue  # the first one is told either way
                name = f"left_{how.replace('-', '_')}_{after_ms}ms_{who}_{label}"
                REGISTRY[name] = Case(leave, faults, (how, after_ms, who, label), load=LIGHT, lab_options=ONE_RETRY)
for how in ("eintr", "restart", "jump", "close", "pair", "dup2", "shutdown", "disconnect", "disconnect-dup"):
    for who in WHO:
        if sanitizer.USED:
            continue  # connect() has not come to the kernel by then
        name = f"left_{how.replace('-', '_')}_{AT_ONCE_MS}ms_{who}_dead"
        REGISTRY[name] = Case(leave, ("all-dead",), (how, AT_ONCE_MS, who, "dead"), load=LIGHT, lab_options=ONE_RETRY)


def helped(network, how, after_ms, who):
    """A signal that does not end the call does not end its race either, whoever looks after it."""
    host = network.host("helped")
    run = network.run(victim("left", *WHO[who], how, after_ms, host.name, 7), happy=True, trace=hardening.TRACE)
    check_equal((run.status, hardening.said(run, "connect")), (0, "connected"), "the program")
    check_equal(hardening.said(run, "handled"), f"{int(after_ms == EARLY_MS)} in the caller", "handlers that ran")
    took_ms = float(hardening.said(run, "took_ms"))
    check(took_ms < 1500, f"connect() took {took_ms} ms")


# In mid-race, and never.
for after_ms in EARLY_MS, 60_000:
    for who in WHO:
        for how in "restart", "mixed-restart":
            REGISTRY[f"left_not_{how.replace('-', '_')}_{after_ms}ms_{who}"] = Case(
                helped, ("v6-drop",), (how, after_ms, who), load=LIGHT)


SNATCHED, SEED = 250, int(os.environ.get("HAPPY_TEST_SEED", "20261129"))


def snatch(network, how, who):
    """An fd that is closed right after the call, its number used again: the other socket is left alone."""
    def run(host):
        options = [] if who == "threads" else WHO[who]
        return network.run(victim("snatched", *options, how, SNATCHED, SEED, host.name, 7), happy=host is hosts[1],
                           trace=hardening.TRACE)

    hosts = [network.host(label) for label in ("bare", "happy")]
    bare, happy = map(run, hosts)
    check_equal((hardening.said(bare, "odd_ones"), hardening.said(bare, "touched")), ("few", "0"), "bare")
    hardening.judge(f"connect(), {how} at once, {who}", hosts, bare, happy, slack_s=2)  # the hidden thread stays for a second


for how in ("close", "dup2"):
    for who in ("threads", "nodefer"):
        if sanitizer.USED:
            continue  # connect() has not come to the kernel by then
        REGISTRY[f"snatched_by_{how}_{who}"] = Case(snatch, ("rtt=10",), (how, who), load=HEAVY)


@case("healthy")
def closed_before_the_call(network):
    """A number that shows nothing when connect() is called is the kernel's to refuse: a socket may come behind it."""
    script = """
import os, socket, sys, threading
family, kind, protocol, _, address = socket.getaddrinfo(sys.argv[1], 7, type=socket.SOCK_STREAM)[0]
ends = threading.Event()
threading.Thread(target=ends.wait).start()
s = socket.socket(family, kind, protocol)
os.close(s.fileno())
try:
    s.connect(address)
except OSError as e:
    print(e.strerror)
ends.set()
"""
    host = network.host("closed")
    program = network.start(["/usr/bin/python3", "-c", script, host.name], happy=True)
    run = program.wait(10)
    check_equal((run.status, run.output), (0, "Bad file descriptor\n"), "the program")
    check("not a socket" not in program.trace.read_text(encoding="ascii"), "connect() was looked at")
