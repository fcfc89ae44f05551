"""Programs that race by themselves: with libhappy it is one race with several fds, so that no address gets more SYNs than it
gets bare, and none is reached later."""

from cases import REGISTRY, Case, check, check_equal, families
import matrix

PROGRAMS = ("curl", "git-http", "py-asyncio-HE", "node", "apt-helper", "links")
FAULTS = ("healthy", "v6-drop", "v6-reset", "v6-unreachable", "v6-slow=180", "first-address-dead", "aaaa-silent")
# As fast as programs without a race of their own, where bare would hang: seconds more than in the healthy network.
LIMITS = {"first-address-dead": 0.9, "aaaa-silent": 0.15}
SLACK_S = 0.4  # two cores, and node and git take their time to start


def own_race(network, program, fault):
    """SYNs per address, the time to accept(), and the exit status, beside bare."""
    words, stdin, _ = matrix.PROGRAMS[program]
    hosts, runs = [network.host(label) for label in ("bare", "happy")], []
    for host in hosts:
        command = [word.replace("{}", host.name) for word in words]
        runs.append(network.run(command, happy=host is hosts[1], stdin=stdin, seconds=4))
    bare, happy = ([syn["address"] for syn in network.syns(host)] for host in hosts)
    place = {address: number for number, address in enumerate(hosts[1].addresses())}
    for address in hosts[1].addresses():
        by_itself = bare.count(hosts[0].addresses()[place[address]])
        check(happy.count(address) <= max(1, by_itself), f"{address}: SYNs {happy}, bare {bare}")
    if fault == "healthy":
        check_equal(*(sorted(families(network.syns(host))) for host in reversed(hosts)), "SYNs")
    times = []
    for host, run in zip(hosts, runs):
        accept = matrix.used_accept(network, host)
        times.append((accept["time_ms"] - run.started_ms) / 1000 if accept else None)
    check(times[1] is not None, f"no connection; status {runs[1].status}, output {runs[1].output[-300:]!r}")
    # git, apt and curl with libhappy reach a server where bare ones were cut off.
    wanted = LIMITS[fault] + SLACK_S + 0.2 if fault in LIMITS else times[0] + SLACK_S
    check(times[1] <= wanted, f"{times[1]:.2f} s to accept(), bare {times[0]}, limit {wanted:.2f}")


for name in PROGRAMS:
    for kind in FAULTS:
        REGISTRY[f"own_race.{name}.{kind}"] = Case(own_race, (kind,), (name, kind))
