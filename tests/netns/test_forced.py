"""HAPPY_FORCE, which other people's suites are run under: what it does must not be what they find."""

from cases import REGISTRY, Case, check, check_equal, victim

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
