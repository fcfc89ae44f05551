"""Calls of connect() that end before their time: as bare, and nothing is touched afterwards."""

import hardening
from cases import LIGHT, REGISTRY, Case, victim

# One dead address takes 3 s.
ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}
EARLY_MS, LATE_MS = 120, 700  # before the first hidden attempt, and after it
AT_ONCE_MS = 2  # within the first tick of the kernel's clock


def leave(network, how, after_ms, threads, label):
    """Both runs end in the same way; the network hears nothing of the lookup afterwards."""
    def command(host):
        return victim("left", *threads, how, after_ms, host.name, 7)

    item = f"connect() left: {how} after {after_ms} ms{', threads' if threads else ''}, {label}"
    # Where all fail, the last attempt began 250 ms after the first, and fails so much later.
    hosts, _, happy = hardening.compare(network, item, command, slack_s=0.6 if label == "dead" else hardening.SLACK_S)
    hardening.check_quiet_after(network, hosts[1], float(hardening.said(happy, "at_left")))


# What happens, and in which networks: dead; IPv6 completes late, so that a socket that was left connects by itself, as
# it does bare; IPv4 completes after the program has left, so that a hidden attempt would win.
NETWORKS = (("dead", ("all-dead",)), ("slow", ("v6-slow=1600", "v4-drop")), ("winner", ("v6-drop", "v4-slow=900")))
for how in ("eintr", "restart", "mixed-eintr", "mixed-restart", "sndtimeo", "sndtimeo-restart", "jump", "jump-restart", "close", "pair",
            "dup2"):
    for after_ms in (EARLY_MS, LATE_MS):
        for threads in ((), ("-t",)):
            for label, faults in NETWORKS:
                if label == "winner" and how in ("restart", "mixed-restart"):
                    continue  # goes on, and is won
                name = f"left_{how.replace('-', '_')}_{after_ms}ms_{'threads' if threads else 'alone'}_{label}"
                REGISTRY[name] = Case(leave, faults, (how, after_ms, threads, label), load=LIGHT, lab_options=ONE_RETRY)
for how in ("eintr", "restart", "jump"):
    for threads in ((), ("-t",)):
        name = f"left_{how}_{AT_ONCE_MS}ms_{'threads' if threads else 'alone'}_dead"
        REGISTRY[name] = Case(leave, ("all-dead",), (how, AT_ONCE_MS, threads, "dead"), load=LIGHT, lab_options=ONE_RETRY)
