"""Comparing a program with libhappy with the same program bare, in the same network: everything that can be seen."""

import os
import re
from collections import Counter

import sanitizer
from cases import check, check_equal, emit

SLACK_S = 0.3  # on a busy machine with two cores
TRACE = os.environ.get("HAPPY_TEST_TRACE") == "1"  # to look into a failure; the trace's fd is then one too many
TABLE_MARK = "compared: "  # run.py collects these lines


def masked(output, host):
    """The output with what differs from one name to the other replaced."""
    for number, address in enumerate(host.addresses()):
        output = re.sub(rf"{re.escape(address)}\b", f"ADDRESS{number}", output)
    return output.replace(host.name, "NAME")


def split(output, host):
    """The lines to be compared as they are, and the times among them, in seconds."""
    lines, times = [], {}
    for line in masked(output, host).splitlines():
        key, _, value = line.partition(" ")
        if key.endswith("_ms"):
            times[key] = float(value) / 1000
        elif not key.startswith("at_"):
            lines.append(line)
    return lines, times


def said(run, key):
    """The value of a line of the victim's report."""
    return next((line.split(" ", 1)[1] for line in run.output.splitlines() if line.startswith(f"{key} ")), None)


def summary(run, lines):
    """A run in a few words, for the table."""
    status = "cut off" if run.status is None else f"status {run.status}"
    shown = "; ".join(lines)
    return f"{status}, {run.seconds():.1f} s; {shown}"


def differences(bare, happy, hosts, slack_s, sooner):
    """What differs between two runs, one line each."""
    (bare_lines, bare_times), (happy_lines, happy_times) = split(bare.output, hosts[0]), split(happy.output, hosts[1])
    if happy.status != bare.status:
        yield f"exit status {happy.status}, bare {bare.status} (output {happy.output.strip()[-300:]!r})"
    if happy_lines != bare_lines:
        only_bare = list((Counter(bare_lines) - Counter(happy_lines)).elements())
        only_happy = list((Counter(happy_lines) - Counter(bare_lines)).elements())
        order = "" if only_bare or only_happy else f" in order: {bare_lines}, {happy_lines}"
        yield f"output differs: bare {only_bare}, with libhappy {only_happy}{order}"
    if happy.seconds() > bare.seconds() + slack_s + sanitizer.START_S:
        yield f"{happy.seconds():.2f} s, bare {bare.seconds():.2f} s"
    for key, value in bare_times.items():
        low = 0 if sooner else value - slack_s
        if key in happy_times and not low <= happy_times[key] <= value + slack_s:
            yield f"{key[:-3]} {happy_times[key]:.2f} s, bare {value:.2f} s"


def tell(item, bare, happy, equal):
    """A row of the table of what was compared."""
    emit(TABLE_MARK, [item, bare, happy, equal])


def run_both(network, make_command, seconds=20, host_settings=None, **options):
    """The command bare and with libhappy, at the same time, each with a name of its own."""
    hosts = [network.host(label, **(host_settings or {})) for label in ("bare", "happy")]
    programs = [network.start(make_command(host), happy=host is hosts[1], trace=TRACE, **options) for host in hosts]
    return (hosts, *(program.wait(seconds) for program in programs))


def judge(item, hosts, bare, happy, slack_s=SLACK_S, sooner=False, status=0):
    """Both runs must be equal: status, output, times within `slack_s` (`sooner`: libhappy may be faster).

    `status` is how bare must end, so that a victim that does not run at all is not taken for equal.
    """
    check_equal(bare.status, status, f"bare's exit status (output {bare.output.strip()[-300:]!r})")
    found = list(differences(bare, happy, hosts, slack_s, sooner))
    tell(item, summary(bare, split(bare.output, hosts[0])[0]), summary(happy, split(happy.output, hosts[1])[0]),
         not found)
    check(not found, f"{item}: " + "; ".join(found))


def compare(network, item, make_command, seconds=20, host_settings=None, environment=None, **judged):
    """Runs a command bare and with libhappy, and judges."""
    hosts, bare, happy = run_both(network, make_command, seconds, host_settings, environment=environment)
    judge(item, hosts, bare, happy, **judged)
    return hosts, bare, happy


def compare_result(network, item, make_command, **options):
    """A program that walks the addresses: both must end in the same way and reach a server; libhappy sooner."""
    _, bare, happy = run_both(network, make_command, **options)
    last = [(run.output.splitlines() or [""])[-1] for run in (bare, happy)]
    equal = bare.status == happy.status == 0 and [line.split(" ")[0] for line in last] == ["peer", "peer"]
    tell(item, summary(bare, last[:1]), summary(happy, last[1:]), equal)
    check(equal, f"{item}: bare {bare.status} {bare.output!r}, with libhappy {happy.status} {happy.output!r}")
    return bare, happy


def check_quiet_after(network, host, moment_ms, grace_ms=50):
    """No new SYN to the host's addresses later than a moment (retransmissions aside)."""
    late = [syn for syn in network.syns(host) if syn["time_ms"] > moment_ms + grace_ms]
    check(not late, f"SYNs after the end: {late} (end {moment_ms:.0f})")
