"""Answers that are late, missing or wrong."""

import programs
from cases import case, check_between, check_connected, check_equal, families, report, victim


def run_program(network, name):
    """Runs one of the programs with libhappy against a new name."""
    program = programs.find(name)
    host = network.host(name)
    return host, network.run(program.command(host), happy=True, stdin=program.stdin)


# spec: CHANGE-1
@case("aaaa-late=400", "v4-drop")
def late_address_wins(network):
    """The AAAA answer joins the running race: its address is tried at once, and wins."""
    for name in ("python-create-connection", "wget", "bash-dev-tcp"):
        host, run = run_program(network, name)
        check_connected(network, host, run, "6", 0.9)
        check_equal(families(network.syns(host)), "46", f"SYNs of {name}")
        answered_ms = network.find("query", name=host.name, type="AAAA")[0]["time_ms"] + 400
        check_between(network.syns(host)[1]["time_ms"] - answered_ms, -1, 60, "ms from the late answer to its SYN")


@case("a-late=400", "v6-drop")
def late_ipv4_wins(network):
    """A positive AAAA starts the race; the late A joins it."""
    host, run = run_program(network, "python-create-connection")
    check_connected(network, host, run, "4", 0.9)
    check_equal(families(network.syns(host)), "64", "SYNs")


@case("a-silent")
def no_wait_for_ipv4(network):
    """IPv6 is there and works: the A answer is not waited for."""
    for name in ("wget", "python-create-connection", "ssh"):
        host, run = run_program(network, name)
        check_connected(network, host, run, "6", 0.5)
        check_equal(families(network.syns(host)), "6", f"SYNs of {name}")


@case("aaaa-late=20")
def short_wait_for_ipv6(network):
    """An AAAA answer within the Resolution Delay is waited for: IPv6 stays preferred."""
    host, run = run_program(network, "wget")
    check_connected(network, host, run, "6", 0.5)
    check_equal(families(network.syns(host)), "6", "SYNs")


# spec: ANSWER-3
@case("aaaa-late=300")
def resolution_delay(network):
    """The first SYN goes out 50 ms after the A answer, over IPv4."""
    host, run = run_program(network, "wget")
    check_connected(network, host, run, "4", 0.5)
    asked_ms = network.find("query", name=host.name, type="A")[0]["time_ms"]
    check_between(network.syns(host)[0]["time_ms"] - asked_ms, 45, 110, "ms from the A query to the first SYN")


def check_ipv4_at_once(network, within_s):
    """No Resolution Delay: the first SYN is IPv4's and follows the answers directly."""
    host, run = run_program(network, "wget")
    check_connected(network, host, run, "4", within_s)
    check_equal(families(network.syns(host)), "4", "SYNs")


@case("aaaa-servfail")
def negative_by_error(network):
    """SERVFAIL is an answer."""
    check_ipv4_at_once(network, 0.5)


@case("aaaa-none")
def negative_by_absence(network):
    """So is an empty one."""
    check_ipv4_at_once(network, 0.3)


@case("dns-garbage")
def garbage(network):
    """An answer nobody can read: at worst as if there were none."""
    check_ipv4_at_once(network, 0.5)


@case("dns-truncated")
def truncated(network):
    """Truncated answers are fetched over TCP."""
    host, run = run_program(network, "wget")
    check_connected(network, host, run, "6", 0.5)


@case()
def lookups_as_glibc(network):
    """What cannot be resolved fails as it does bare."""
    network.set_record("broken.test", "A", action="servfail")
    network.set_record("broken.test", "AAAA", action="servfail")
    network.set_record("empty.test", "A", records=[])
    for name in ("broken.test", "empty.test", "absent.test"):
        bare = network.run(victim("walk", name, 7))
        happy = network.run(victim("walk", name, 7), happy=True)
        check_equal((happy.status, happy.output), (bare.status, bare.output), name)


@case("v6-drop")
def alias(network):
    """A CNAME's target is raced as any name."""
    host = network.host("target")
    network.set_record("alias.test", "CNAME", records=[host.name])
    run = network.run(victim("walk", "alias.test", 7), happy=True)
    check_connected(network, host, run, "4", 0.7)


@case()
def names_from_hosts(network):
    """A name in /etc/hosts resolves as bare, and nothing is asked of DNS."""
    host = network.host("unused")
    with open("/etc/hosts", "a", encoding="ascii") as hosts:
        hosts.write(f"{host.ipv4[0]} local.test\n")
    run = network.run(victim("walk", "local.test", 7), happy=True)
    check_equal(report(run).get("peer"), host.ipv4[0], f"peer (output {run.output!r})")
    check_equal(network.find("query", name="local.test"), [], "queries")
