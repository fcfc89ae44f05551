"""What the program finds behind its fd after connect()."""

from cases import case, check, check_between, check_connected, check_equal, families, report, victim

FDS_OF_LIBHAPPY = 1  # the trace's
KEPT = {"connect": "connected", "cloexec": "1", "nonblock": "0", "nodelay": "1", "keepalive": "1", "keepidle": "77",
        "class": "16", "sndtimeo": "9.000000", "so_error": "0", "echo": "works"}


def check_state(run, **expected):
    """The victim's report says what it must."""
    said = report(run)
    for key, value in {**KEPT, **expected}.items():
        check_equal(said.get(key), value, key)
    check_fds(said)


def check_fds(said):
    """No fd is left of lookups, attempts and the worker."""
    check_equal(int(said.get("fds_more", 99)), FDS_OF_LIBHAPPY, "fds more than before")


@case()
def healthy_socket_is_the_programs_own(network):
    """No hand-over where nothing is wrong: the same file description, with all that was set on it."""
    host = network.host("state")
    check_state(network.run(victim("state", host.name, 7), happy=True), socket="kept", peer=host.ipv6[0])


@case("v6-drop")
def hand_over_keeps_state(network):
    """The winner of the other family has the options, flags and time-out of the program's socket; nothing leaks."""
    host = network.host("state")
    run = network.run(victim("state", host.name, 7), happy=True)
    check_state(run, socket="replaced", peer=host.ipv4[0], local="192.0.2.2")


@case("v6-reset")
def early_failure_keeps_state(network):
    """The same when the first attempt failed early."""
    host = network.host("state")
    check_state(network.run(victim("state", host.name, 7), happy=True), peer=host.ipv4[0])


@case("v6-drop", seconds=60)
def many_hand_overs_leak_nothing(network):
    """Twenty races in one process, each with its hand-over."""
    host = network.host("many")
    run = network.run(victim("many", 20, host.name, 7), happy=True)
    check_equal({key: report(run).get(key) for key in ("connected", "replaced")},
                {"connected": "20", "replaced": "20"}, f"report (output {run.output!r})")
    check_fds(report(run))
    check_equal(families(network.accepts(host)), "4" * 20, "connections")


@case()
def hundred_healthy_connects(network):
    """A single-threaded program stays one; one SYN for each connect."""
    host = network.host("many")
    run = network.run(victim("many", 100, host.name, 7), happy=True)
    said = report(run)
    check_fds(said)
    del said["fds_more"]
    check_equal(said, {"connected": "100", "replaced": "0", "threads": "1"}, "report")
    check_equal(families(network.syns(host)), "6" * 100, "SYNs")


@case("v6-slow=700")
def losers_leave_no_connection(network):
    """The loser was on its way when it was given up: the server hears of it, but has nothing to accept."""
    host = network.host("slow")
    run = network.run(victim("walk", host.name, 7), happy=True)
    check_connected(network, host, run, "4", 0.7)
    check_equal(families(network.syns(host)), "64", "SYNs")
    # A later connection to the slow address: when it is accepted, everything sent before it has long arrived.
    network.run(victim("walk", "-o", host.ipv6[0], host.name, 7))
    accepts = [accept for accept in network.accepts(host) if accept["address"] == host.ipv6[0]]
    check_equal(len(accepts), 1, "connections to the slow address")
    check(network.wait_end(accepts[0])["bytes"] == 1, "it is not the later one")


@case("v6-slow=400")
def slow_but_first(network):
    """IPv6 is slower than the delay and IPv4 faster: whoever completes first is what the program gets."""
    host = network.host("slow")
    run = network.run(victim("state", host.name, 7), happy=True)
    check_state(run, peer=host.ipv4[0])


@case("v4-slow=600", "v6-slow=300")
def first_attempt_may_still_win(network):
    """The second attempt does not disturb the first: IPv6 completes at 300 ms and is the program's own socket."""
    host = network.host("patient")
    run = network.run(victim("state", host.name, 7), happy=True)
    check_state(run, socket="kept", peer=host.ipv6[0])
    check_equal(families(network.syns(host)), "64", "SYNs")
    check_equal(families(network.accepts(host)), "6", "connections")
