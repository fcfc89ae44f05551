"""When the race goes to IPv4: IPv6 delayed in steps; lost packets; short limits of the program's own; a long dead list.

HAPPY_SWEEP=1 makes the sweep of 0 to 400 ms in steps of 5, nine times, and a hundred fetches over the lossy network.
"""

import concurrent.futures
import os
import statistics

import hardening
from cases import REGISTRY, Case, case, check, check_between, check_equal, check_spacing, families

FULL = os.environ.get("HAPPY_SWEEP") == "1"
DELAY_MS = 250  # Connection Attempt Delay
TOLERANCE_MS = 15
STEP_MS, TIMES = (5, 9) if FULL else (10, 3)
# The host's number in its lab gives its delay: START + STEP_MS x number (faults.py: v6-ladder).
LADDERS = ((-5, 40), (195, 41)) if FULL else ((190, 12),)
AT_ONCE = 4
FETCHES = 100 if FULL else 30
PATIENCE_S = 8
WGET = ("wget", "-qO-", "-t1", f"-T{PATIENCE_S}")
CURL = ("curl", "-s", "--max-time", PATIENCE_S)
PERL = r"""use Socket qw(:all);
my ($error, $first) = getaddrinfo($ARGV[0], 80, {socktype => SOCK_STREAM});
socket(my $s, $first->{family}, SOCK_STREAM, 0) or die;
setsockopt($s, SOL_SOCKET, SO_SNDTIMEO, pack("l!l!", 0, 200_000)) or die;
connect($s, $first->{addr}) or die "connect: $!";
syswrite($s, "GET / HTTP/1.0\r\n\r\n");
sysread($s, my $answer, 100) or die "read: $!";"""
ASYNCIO = """import asyncio, sys
async def main():
    r, w = await asyncio.open_connection(sys.argv[1], 80, happy_eyeballs_delay=0.25)
    w.write(b'GET / HTTP/1.0\\r\\n\\r\\n')
    await w.drain()
    assert await r.read()
    w.close()
asyncio.run(asyncio.wait_for(main(), %d))""" % PATIENCE_S


def _winner(network, host):
    """The family of the connection that a wget with libhappy uses."""
    run = network.run([*WGET, f"http://{host.name}/"], happy=True, trace=False, seconds=5,
                      environment={"HAPPY_HISTORY": "off"})
    check_equal(run.status, 0, f"{host.name}: status (output {run.output!r})")
    used = [accept for accept in network.accepts(host) if network.wait_end(accept)["bytes"] > 0]
    return families(used[-1:])


def _flip_ms(winners):
    """Where IPv6 stops winning: in the middle of the last delay before which it wins more often and the next."""
    delays = sorted(winners)
    wins = [sum(winners[delay] == "6" for delay in delays[:place]) + sum(winners[delay] == "4" for delay in delays[place:])
            for place in range(len(delays) + 1)]
    place = wins.index(max(wins))
    check(0 < place < len(delays), f"it flips nowhere: {winners}")
    return (delays[place - 1] + delays[place]) / 2


def flip(network, start_ms, steps):
    """The family that wins, for each delay; where 250 ms lies inside, it flips there."""
    hosts = {start_ms + STEP_MS * number: network.host(f"d{number}") for number in range(1, steps + 1)}
    flips = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(TIMES):
            winners = dict(zip(hosts, pool.map(lambda host: _winner(network, host), hosts.values())))
            if min(hosts) < DELAY_MS < max(hosts):
                flips.append(_flip_ms(winners))
                continue
            check_equal(set(winners.values()), {"6" if max(hosts) < DELAY_MS else "4"}, f"winners {winners}")
    if flips:
        hardening.tell("IPv6 delayed in steps: goes to IPv4 at", "", f"{statistics.median(flips):.0f} ms of {flips}", True)
        check_between(statistics.median(flips), DELAY_MS - TOLERANCE_MS, DELAY_MS + TOLERANCE_MS,
                      f"median of the delays at which IPv4 wins {flips}")


for first, count in LADDERS:
    # spec: ATTEMPT-4 CONFIG-1
    REGISTRY[f"flip.{first + STEP_MS}"] = Case(flip, (f"v6-ladder={first},{STEP_MS}",), (first, count), seconds=240)


# spec: SORT-6 ATTEMPT-6
@case("all-dead")
def ten_and_ten_dead(network):
    """10 AAAA and 10 A, nothing answers: every address once, families in turn, a delay between any two."""
    host = network.host("many", [*(f"2001:db8:2:d::{n:x}" for n in range(1, 11)), *(f"198.51.100.{n}" for n in range(130, 140))])
    network.run([*WGET, f"http://{host.name}/"], happy=True, seconds=6.5)
    syns = network.syns(host)
    check_equal(families(syns), "64" * 10, "families of the SYNs")
    check_equal(len({syn["address"] for syn in syns}), 20, "addresses attempted")
    check_spacing(syns)


def _row(took, total):
    """One line about the fetches that ended well."""
    took = sorted(took)
    if not took:
        return f"0 of {total}"
    return f"{len(took)} of {total}, median {statistics.median(took):.2f} s, p95 {took[int(0.95 * (len(took) - 1))]:.2f} s"


@case("v6-loss=20", "v4-loss=20", seconds=280)
def lossy_both_ways(network):
    """20 % of all packets are lost each way: wget with libhappy beside programs that race by themselves."""
    programs = {"wget": (WGET, False), "wget with libhappy": (WGET, True), "curl": (CURL, False),
                "asyncio": (("/usr/bin/python3", "-c", ASYNCIO), False)}
    hosts = {name: network.host(name.replace(" ", "-")) for name in programs}

    def fetch(name):
        command, happy = programs[name]
        url = hosts[name].name if name == "asyncio" else f"http://{hosts[name].name}/"
        run = network.run([*command, url], happy=happy, trace=False, seconds=PATIENCE_S + 2,
                          environment={"HAPPY_HISTORY": "off"})
        return name, run.seconds() if run.status == 0 else None

    with concurrent.futures.ThreadPoolExecutor(2 * AT_ONCE) as pool:
        results = list(pool.map(fetch, [name for _ in range(FETCHES) for name in programs]))
    took = {name: [seconds for of, seconds in results if of == name and seconds is not None] for name in programs}
    for name in ("curl", "asyncio", "wget"):
        hardening.tell(f"20 % loss each way: {name}", _row(took[name], FETCHES), _row(took["wget with libhappy"], FETCHES), True)
    # Two standard deviations of so few fetches; the network's luck is not the same for all.
    fewest = min(len(took["curl"]), len(took["asyncio"])) - 0.12 * FETCHES
    check(len(took["wget with libhappy"]) >= fewest, f"fetches that ended well: { {k: len(v) for k, v in took.items()} }")
    slowest = max(sorted(took[name])[int(0.95 * (len(took[name]) - 1))] for name in ("curl", "asyncio"))
    check_between(sorted(took["wget with libhappy"])[int(0.95 * (len(took["wget with libhappy"]) - 1))], 0, slowest + 1.5,
                  "p95 in s")


# spec: ATTEMPT-4
@case("v6-drop")
def limit_shorter_than_the_delay(network):
    """Perl with an SO_SNDTIMEO of 200 ms on its socket: IPv4 has its try before."""
    hosts = [network.host(label) for label in ("bare", "happy")]
    runs = [network.run(["/usr/bin/perl", "-e", PERL, host.name], happy=host is hosts[1], seconds=5) for host in hosts]
    check(runs[0].status not in (0, None) and runs[0].seconds() < 1, f"bare, the limit does not hold: {runs[0]}")
    syns = network.syns(hosts[1])
    check_equal(families(syns), "64", f"SYNs (output {runs[1].output[-300:]!r})")
    check_between(syns[1]["time_ms"] - syns[0]["time_ms"], 60, 190, "ms between the SYNs")
    check_equal(families(network.accepts(hosts[1])), "4", "connection")
    check_equal(runs[1].status, 0, f"status (output {runs[1].output[-300:]!r})")
