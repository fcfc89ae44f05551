"""A thousand connects in flight in one process."""

import hardening
from cases import HEAVY, REGISTRY, Case, check_between, check_equal, report, victim

COUNT = 1000
WIDE = 8192  # RLIMIT_NOFILE
LAST_S = 1.5  # 0.6 s on an idle machine
RACE_KIB = 28  # what a race in flight may cost; 16 by epoll, 24 with a thread for each


def crowd(network, style, count, limit, happy):
    """The victim's report."""
    host = network.host(style)
    run = network.run(victim("crowd", style, count, host.name, 7, limit), happy=happy, trace=hardening.TRACE, seconds=40)
    check_equal(run.status, 0, f"status (output {run.output[-300:]!r})")
    return report(run)


def more(said, calm, key):
    """By how much a number of the report exceeds bare's."""
    return int(said[key]) - int(calm[key])


def all_win(network, style):
    """All win in time, by one worker, and are what they seem; what each costs."""
    calm, said = (crowd(network, style, COUNT, WIDE, happy) for happy in (False, True))
    check_equal((calm["connected"], calm["pending"]), ("0", str(COUNT)), f"bare ({calm})")
    check_equal((said["connected"], said["elsewhere"], said["echoed"]), (str(COUNT),) * 3, f"winners ({said})")
    check_between(float(said["last_ms"]) / 1000, 0.2, LAST_S, "seconds until the last has won")
    check_equal(more(said, calm, "at_threads_most"), 1, "threads more")
    check_equal((said["fds_more"], said["threads_more"]), ("0", "0"), "left behind")
    kib = more(said, calm, "at_kib") / COUNT
    check_between(kib, 0, RACE_KIB, "KiB for each race")
    hardening.tell(f"{COUNT} connects by {style}, IPv6 SYNs vanish", f"all pending after 4 s, {calm['at_kib']} KiB",
                   f"all connected in {said['last_ms']} ms, {kib:.1f} KiB each", True)


for name in ("epoll", "threads"):
    REGISTRY[f"crowd_of_1000_{name}"] = Case(all_win, ("v6-drop",), (name,), load=HEAVY, seconds=100)


def few_numbers(network, style):
    """Hidden sockets take a quarter of the numbers that the program leaves: races go on in turns, and all win."""
    calm, said = (crowd(network, style, MANY, NARROW, happy) for happy in (False, True))
    check_equal((calm["connected"], calm["failed"]), ("0", "0"), f"bare ({calm})")
    check_equal((said["connected"], said["echoed"]), (str(MANY),) * 2, f"winners ({said})")
    hidden = more(said, calm, "at_fds_most")
    hardening.tell(f"{MANY} connects by {style}, RLIMIT_NOFILE {NARROW}", f"{calm['at_fds_most']} fds",
                   f"all connected in {said['last_ms']} ms; {hidden} fds more at most", True)
    check_between(hidden, 8, (NARROW - MANY) / 4 + 2, "descriptors more, at most")
    check_equal((said["fds_more"], said["threads_more"]), ("0", "0"), "left behind")


def no_numbers(network):
    """Where hardly any number is left nothing is raced, and nothing fails."""
    calm, said = (crowd(network, "epoll", COUNT, NARROW, happy) for happy in (False, True))
    check_equal((said["connected"], said["failed"], said["pending"]), (calm["connected"], "0", str(COUNT)), f"{said}")
    check_equal(said["at_fds_most"], calm["at_fds_most"], "descriptors")


MANY, NARROW = 600, 1024
for name in ("epoll", "threads"):
    REGISTRY[f"crowd_of_600_{name}_few_numbers"] = Case(few_numbers, ("v6-drop",), (name,), load=HEAVY, seconds=100)
REGISTRY["crowd_of_1000_no_numbers"] = Case(no_numbers, ("v6-drop",), (), load=HEAVY, seconds=100)
