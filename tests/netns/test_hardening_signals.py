"""Signals of all kinds during a race."""

import hardening
from cases import LIGHT, REGISTRY, Case, case, check_between, check_equal, victim


def signals(network, what):
    """The race goes on, handlers run on the program's own threads, and nothing stays behind."""
    _, _, happy = hardening.compare(network, f"signals during connect(): {what}",
                                    lambda host: victim("signals", what, host.name, 7), sooner=True)
    check_equal(hardening.said(happy, "at_connect"), "connected", "connect")
    check_between(float(hardening.said(happy, "connect_ms")) / 1000, 0.2, 0.9, "seconds")


for what in ("child", "stop", "timer", "realtime", "blocked"):
    REGISTRY[f"signals_{what}"] = Case(signals, ("v6-drop",), (what,), load=LIGHT,
                                       lab_options={"client_settings": {"ipv4/tcp_syn_retries": 1}})


@case("v6-drop", "v4-slow=40", client_settings={"ipv4/tcp_syn_retries": 1})
def signals_flood(network):
    """A signal at the moment of the win has the kernel begin anew the call that just ended: it is ended again."""
    for _ in range(2):
        hosts = [network.host("flood") for _ in range(4)]
        programs = [network.start(victim("signals", "flood", host.name, 7), happy=True, trace=hardening.TRACE) for host in hosts]
        for run in [program.wait(20) for program in programs]:
            check_equal(run.status, 0, f"exit status ({run.output!r})")
            check_equal(hardening.said(run, "at_connect"), "connected", "connect")
            alone_s = 3
            check_between(float(hardening.said(run, "connect_ms")) / 1000, 0.2, 0.8 * alone_s, "seconds")
