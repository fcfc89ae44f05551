"""Signals of all kinds during a race."""

import hardening
from cases import LIGHT, REGISTRY, Case, check_between, check_equal, victim


def signals(network, what):
    """The race goes on, handlers run on the program's own threads, and nothing stays behind."""
    _, _, happy = hardening.compare(network, f"signals during connect(): {what}",
                                    lambda host: victim("signals", what, host.name, 7), sooner=True)
    check_equal(hardening.said(happy, "at_connect"), "connected", "connect")
    check_between(float(hardening.said(happy, "connect_ms")) / 1000, 0.2, 0.9, "seconds")


for what in ("child", "stop", "timer", "realtime", "blocked"):
    REGISTRY[f"signals_{what}"] = Case(signals, ("v6-drop",), (what,), load=LIGHT,
                                       lab_options={"client_settings": {"ipv4/tcp_syn_retries": 1}})
