"""Every call that the engine makes to the system fails once, one run for each: no run of a program may show it."""

import json

from cases import case, check, check_equal, report, victim

AT_ONCE = 40  # runs side by side; nearly all of them only wait
# On a busy machine an answer may be late; a query that is still open would keep its socket until the next call.
PATIENT = {"HAPPY_RESOLUTION_DELAY_MS": 1000}
MOST_CALLS = 600  # a lookup and a race make some 200; the loop must end by itself long before


def was_hit(program):
    """Whether the fault was met: the run made that many calls."""
    lines = program.trace.read_text(encoding="ascii").splitlines() if program.trace.exists() else []
    return any(json.loads(line)["event"] == "call_failed" for line in lines)


def fail_each_call(network, command, judge):
    """Runs the program with the first, second, third ... call failing, until a run passes untouched."""
    for first in range(1, MOST_CALLS, AT_ONCE):
        numbers = range(first, first + AT_ONCE)
        programs = [network.start(command, happy=True, environment={"HAPPY_FAIL_CALL": number, **PATIENT})
                    for number in numbers]
        runs = [program.wait(20) for program in programs]
        for number, run in zip(numbers, runs):
            check_equal(run.status, 0, f"exit status with call {number} failing ({run.output!r})")
            judge(number, run)
        if not all(map(was_hit, programs)):
            return
    check(False, f"more than {MOST_CALLS} calls")


def look_up_and_connect(network, most_seconds):
    """The victim of that name, as bare."""
    host = network.host("each")
    command = victim("each_call", host.name, 7)
    bare = network.run(command)
    check_equal(bare.status, 0, "bare exit status")
    expected = bare.output.replace("fds_more 0", "fds_more 1")  # the trace's own

    def judge(number, run):
        check_equal(run.output, expected, f"output with call {number} failing")
        check(run.seconds() < most_seconds, f"call {number}: {run.seconds()} s")

    fail_each_call(network, command, judge)


@case(seconds=90)
def each_call_fails_healthy(network):
    """Where nothing is wrong with the network the program is as quick as bare."""
    look_up_and_connect(network, 7)


@case("v6-drop", seconds=150, client_settings={"ipv4/tcp_syn_retries": 1})
def each_call_fails_in_a_race(network):
    """Where the first address is dead the program races, or ends as bare."""
    look_up_and_connect(network, 12)


@case(seconds=90)
def each_call_fails_for_old_functions(network):
    """gethostbyname2() and gethostbyname2_r() answer all the same."""
    host = network.host("old")
    for family, found in (("2h", host.ipv4), ("10r", host.ipv6)):

        def judge(number, run, found=found):
            said = report(run)
            seen = {key: value for key, value in said.items() if not key.startswith("ms")}
            expected = {"code_1": "0", "addresses_1": found[0], "name_1": host.name}
            check_equal(seen, expected, f"answer with call {number} failing")
            check(run.seconds() < 7, f"call {number}: {run.seconds()} s")

        fail_each_call(network, victim("looks_up", family, host.name), judge)
