"""Unmodified programs with libhappy: each reaches a server in time, in each kind of network."""

import json

import programs
from cases import case, case_per_program, check, check_connected, check_equal, check_spacing, families, victim


def run_happily(network, program, by_happy_run=False):
    """Runs the program with libhappy against a new name; checks its exit status."""
    host = network.host(program.name)
    run = network.run(program.command(host), happy=True, by_happy_run=by_happy_run, stdin=program.stdin)
    check_equal(run.status, program.status, f"exit status (output {run.output.strip()[-300:]!r})")
    return host, run


@case_per_program()
def healthy(network, program):
    """One SYN, to IPv6, and one connection."""
    host, run = run_happily(network, program)
    check_connected(network, host, run, "6", 0.7)
    check_equal(families(network.syns(host)), "6", "SYNs")


@case_per_program("v6-drop")
def v6_drop(network, program):
    """Silent IPv6 costs one Connection Attempt Delay."""
    host, run = run_happily(network, program)
    check_connected(network, host, run, "4", 0.7)
    syns = network.syns(host)
    check_equal(families(syns), "64", "SYNs")
    check_spacing(syns)


@case_per_program("aaaa-silent")
def aaaa_silent(network, program):
    """A lost AAAA answer costs the Resolution Delay, not 15 s."""
    host, run = run_happily(network, program)
    check_connected(network, host, run, "4", 0.5)
    check_equal(families(network.syns(host)), "4", "SYNs")


@case_per_program("first-address-dead")
def first_address_dead(network, program):
    """Two addresses of each family, only the last IPv4 one alive: the families alternate."""
    host, run = run_happily(network, program)
    check_connected(network, host, run, "4", 1.3)
    syns = network.syns(host)
    check_equal(families(syns), "6464", "SYNs")
    check_spacing(syns)


@case_per_program("v6-reset")
def v6_reset(network, program):
    """A refusal starts the next attempt at once."""
    host, run = run_happily(network, program)
    check_connected(network, host, run, "4", 0.3)
    check_equal(families(network.syns(host)), "64", "SYNs")


@case_per_program("v6-unreachable")
def v6_unreachable(network, program):
    """An ICMP error starts the next attempt at once."""
    host, run = run_happily(network, program)
    check_connected(network, host, run, "4", 0.3)
    check_equal(families(network.syns(host)), "64", "SYNs")


@case_per_program("v6-noroute")
def v6_noroute(network, program):
    """What has no route sends nothing and costs nothing."""
    host, run = run_happily(network, program)
    check_connected(network, host, run, "4", 0.3)
    check_equal(families(network.syns(host)), "4", "SYNs")


@case_per_program("v6-unreachable-route")
def v6_unreachable_route(network, program):
    """A route that says unreachable, likewise."""
    host, run = run_happily(network, program)
    check_connected(network, host, run, "4", 0.3)
    check_equal(families(network.syns(host)), "4", "SYNs")


@case("v6-drop")
def wrapped_by_happy_run(network):
    """scripts/happy-run does what LD_PRELOAD does, for a program that connects itself and for a shell's child."""
    for name in ("wget", "ssh", "git"):
        program = programs.find(name)
        host, run = run_happily(network, program, by_happy_run=True)
        check_connected(network, host, run, "4", 0.7)
    host = network.host("child")
    run = network.run(["sh", "-c", f"wget -q -t1 -O- http://{host.name}/; exit 7"], happy=True, by_happy_run=True)
    check_connected(network, host, run, "4", 0.7)
    check_equal(run.status, 7, "exit status")


@case("v6-drop")
def switched_off(network):
    """HAPPY_DISABLE=1: as bare."""
    host = network.host("off")
    run = network.run(victim("walk", "-s", "700", host.name, 7), happy=True, environment={"HAPPY_DISABLE": "1"})
    check_equal(run.output, f"{host.ipv6[0]} EINPROGRESS\n{host.ipv4[0]} connected\npeer {host.ipv4[0]}\n", "output")
    first, second = network.syns(host)
    check(second["time_ms"] - first["time_ms"] >= 690, "IPv4 was tried early")


@case("v6-drop")
def trace(network):
    """The trace is JSON, one object a line, and tells of the race."""
    host = network.host("traced")
    network.run(victim("walk", host.name, 7), happy=True)
    lines = next(network.folder.glob("*.trace")).read_text(encoding="utf-8").splitlines()
    events = [json.loads(line)["event"] for line in lines]
    for wanted in ("lookup", "query", "answer", "order", "attempt", "winner"):
        check(wanted in events, f"no {wanted} among {events}")


@case("v6-drop")
def quiet_without_trace(network):
    """Without HAPPY_TRACE nothing is printed and no file made."""
    host = network.host("quiet")
    run = network.run(victim("walk", host.name, 7), happy=True, trace=False)
    check_equal(run.output, f"{host.ipv6[0]} connected\npeer {host.ipv4[0]}\n", "output")
    check_equal(list(network.folder.glob("*.trace")), [], "trace files")


# spec: LIMIT-1
@case("v6-reset")
def hidden_failures_are_told(network):
    """What the program does not see stands in the trace: which endpoint failed, of what, each time."""
    host = network.host("twice")
    script = "import socket, sys\nfor _ in range(2): socket.create_connection((sys.argv[1], 7)).close()"
    # Without a history, or the second connect would not try what has just failed.
    program = network.start(["/usr/bin/python3", "-c", script, host.name], happy=True, environment={"HAPPY_HISTORY": "off"})
    check_equal(program.wait(10).status, 0, "exit status")
    events = map(json.loads, program.trace.read_text(encoding="ascii").splitlines())
    failures = [(e["endpoint"], e["error"]) for e in events if e["event"] == "failure"]
    check_equal(failures, 2 * [(f"[{host.ipv6[0]}]:7", "ECONNREFUSED")], "failures told")



@case("v6-drop", userns=True)
def happy_in_user_namespace(network):
    """The same as another user's root."""
    host, run = run_happily(network, programs.find("wget"))
    check_connected(network, host, run, "4", 0.7)
