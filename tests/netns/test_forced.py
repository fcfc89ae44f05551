"""HAPPY_FORCE, which other people's suites are run under: what it does must not be what they find."""

import hardening
from cases import REGISTRY, Case, case, check, check_equal, victim

CLOSED_PORT = 2


def refused(network, style, threads):
    """The program's own SYN vanishes, the hidden one is refused: so is the program, and soon."""
    run = network.run(victim("waiting", style, threads, "localhost", CLOSED_PORT), happy=True,
                      environment={"HAPPY_FORCE": "swap"})
    outcomes = [line for line in run.output.splitlines() if "so_error" in line]
    check_equal(len(outcomes), 2, f"addresses of localhost tried (status {run.status}, output {run.output!r})")
    check(all("so_error ECONNREFUSED" in outcome for outcome in outcomes), f"outcomes: {outcomes}")


for style in ("poll-out", "epoll-level"):
    for threads in (1, 2):
        REGISTRY[f"forced_swap_refused_{style}_{threads}"] = Case(refused, ("own-drop",), (style, threads))


@case("v6-drop", client_settings={"ipv4/tcp_syn_retries": 1})
def forced_fail_epoll(network):
    """A socket that cannot be taken out of its epoll set stays where it is: the program sees what it sees bare."""
    def waiting(host):
        return victim("waiting", "epoll-level", 1, host.name, 25)

    _, bare, happy = hardening.run_both(network, waiting, environment={"HAPPY_FORCE": "fail:epoll"})
    lines = [[line for line in run.output.splitlines() if not line.startswith("took_ms")] for run in (bare, happy)]
    check_equal((happy.status, lines[1]), (bare.status, lines[0]), "status and what was seen")
    check(happy.seconds() > 2, f"it was handed over all the same ({happy.seconds():.1f} s)")


@case()
def forced_fail_socket(network):
    """No socket for a query of libhappy's own: libc resolves the name."""
    hardening.compare(network, "no socket for queries", lambda host: victim("walk", host.name, 7),
                      environment={"HAPPY_FORCE": "fail:socket"})
