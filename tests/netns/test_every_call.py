"""Every call that the engine makes to the system fails once, one run for each: no run of a program may show it."""

import json

from cases import case, check, check_equal, victim

AT_ONCE = 40  # runs side by side; nearly all of them only wait
# On a busy machine an answer may be late; a query that is still open would keep its socket until the next call.
PATIENT = {"HAPPY_RESOLUTION_DELAY_MS": 1000}
MOST_CALLS = 600  # a lookup and a race make some 200; the loop must end by itself long before


def was_hit(program):
    """Whether the fault was met: the run made that many calls."""
    lines = program.trace.read_text(encoding="ascii").splitlines() if program.trace.exists() else []
    return any(json.loads(line)["event"] == "call_failed" for line in lines)


def fail_each_call(network, allowed):
    """Runs the victim with the first, second, third ... call failing, until a run passes untouched."""
    host = network.host("each")
    bare = network.run(victim("each_call", host.name, 7))
    check_equal(bare.status, 0, "bare exit status")
    expected = bare.output.replace("fds_more 0", "fds_more 1")  # the trace's own
    for first in range(1, MOST_CALLS, AT_ONCE):
        numbers = range(first, first + AT_ONCE)
        programs = [network.start(victim("each_call", host.name, 7), happy=True,
                                  environment={"HAPPY_FAIL_CALL": number, **PATIENT}) for number in numbers]
        runs = [program.wait(20) for program in programs]
        for number, run in zip(numbers, runs):
            check_equal(run.status, 0, f"exit status with call {number} failing ({run.output!r})")
            check_equal(run.output, expected, f"output with call {number} failing")
            allowed(number, run)
        if not all(map(was_hit, programs)):
            return
    check(False, f"more than {MOST_CALLS} calls")


@case(seconds=90)
def each_call_fails_healthy(network):
    """Where nothing is wrong with the network the program is as quick as bare."""
    fail_each_call(network, lambda number, run: check(run.seconds() < 7, f"call {number}: {run.seconds()} s"))


@case("v6-drop", seconds=150, client_settings={"ipv4/tcp_syn_retries": 1})
def each_call_fails_in_a_race(network):
    """Where the first address is dead the program races, or ends as bare."""
    fail_each_call(network, lambda number, run: check(run.seconds() < 12, f"call {number}: {run.seconds()} s"))
