"""Everything dead: programs end as they do bare, hardly later."""

from cases import case, check, check_between, check_equal, families, victim

SLACK_S = 0.3
DELAY_S = 0.25  # Connection Attempt Delay
DEAD_FOUR = ("2001:db8:2:d::1", "2001:db8:2:d::2", "198.51.100.129", "198.51.100.130")


def compare_with_bare(network, make_command, seconds=20, **host_settings):
    """Runs a command bare and with libhappy at the same time; both must return the same and say the same."""
    hosts = network.host("bare", **host_settings), network.host("happy", **host_settings)
    programs = [network.start(make_command(host), happy=host is hosts[1]) for host in hosts]
    bare, happy = (program.wait(seconds) for program in programs)
    check(bare.status is not None, "bare did not end in time")
    check_equal(happy.status, bare.status, f"exit status (output {happy.output!r})")

    def text(output, host):
        for number, address in enumerate(host.addresses()):
            output = output.replace(address, f"ADDRESS{number}")
        return output.replace(host.name, "NAME").splitlines()

    check_equal(text(happy.output, hosts[1]), text(bare.output, hosts[0]), "output")
    return hosts, bare, happy


def check_no_later(bare, happy, timeout_s=0):
    """At most 0.3 s later than bare, and not before the program's own time-out has passed once."""
    check_between(happy.seconds(), timeout_s, bare.seconds() + SLACK_S, "seconds with libhappy")


@case("all-dead")
def own_send_timeout(network):
    """SO_SNDTIMEO on each of two addresses."""
    check_no_later(*compare_with_bare(network, lambda host: victim("walk", "-s", 1000, host.name, 7))[1:], 1)


@case("all-dead")
def short_send_timeout(network):
    """An SO_SNDTIMEO below the Connection Attempt Delay: within it each of the program's connects gives both families a try."""
    hosts, bare, happy = compare_with_bare(network, lambda host: victim("walk", "-s", 120, host.name, 7))
    check_no_later(bare, happy)
    check_equal(families(network.syns(hosts[1])), "6446", "SYNs")


@case("all-dead")
def alarm_that_kills(network):
    """SIGALRM without a handler."""
    check_no_later(*compare_with_bare(network, lambda host: victim("interrupted", "die", 1000, host.name, 7))[1:], 1)


@case("all-dead")
def alarm_that_interrupts(network):
    """A handler without SA_RESTART: EINTR."""
    check_no_later(*compare_with_bare(network, lambda host: victim("interrupted", "eintr", 1000, host.name, 7))[1:], 1)


@case("all-dead")
def alarm_that_jumps(network):
    """A handler that leaves connect() by siglongjmp."""
    check_no_later(*compare_with_bare(network, lambda host: victim("interrupted", "jump", 1000, host.name, 7))[1:], 1)


@case("all-dead")
def early_alarm_that_interrupts(network):
    """EINTR before any hidden attempt."""
    check_no_later(*compare_with_bare(network, lambda host: victim("interrupted", "eintr", 100, host.name, 7))[1:])


@case("all-dead", client_settings={"ipv4/tcp_syn_retries": 1})
def alarm_that_restarts(network):
    """A handler with SA_RESTART: connect() goes on to the kernel's own end."""
    _, bare, happy = compare_with_bare(network, lambda host: victim("interrupted", "restart", 500, host.name, 7))
    check_between(happy.seconds(), 0, bare.seconds() + DELAY_S + SLACK_S, "seconds with libhappy")


@case("all-dead")
def wget_with_a_timeout(network):
    """wget's own time-out jumps out of connect() with siglongjmp."""
    def command(host):
        return ["wget", "-nv", "-t1", "-T1", "-O-", f"http://{host.name}/"]

    check_no_later(*compare_with_bare(network, command)[1:], 1)


@case("all-dead")
def bash_under_timeout(network):
    """A program ended by timeout(1)."""
    def command(host):
        return ["timeout", "1", "bash", "-c", f"exec 3<>/dev/tcp/{host.name}/80"]

    check_no_later(*compare_with_bare(network, command)[1:], 1)


def check_no_timeout_of_its_own(network, make_command):
    """Without a time-out of its own, a program waits as for one address, plus the delays between the attempts."""
    one = network.host("one", addresses=["2001:db8:2:d::9"])
    four = network.host("four", addresses=DEAD_FOUR)
    bare = network.start(make_command(one))
    happy = network.start(make_command(four), happy=True).wait(20)
    bare = bare.wait(20)
    check_equal(happy.status, bare.status, f"exit status (output {happy.output!r})")
    check_between(happy.seconds(), 1, bare.seconds() + 3 * DELAY_S + SLACK_S, "seconds with libhappy")
    return four, happy


@case(client_settings={"ipv4/tcp_syn_retries": 1})
def no_timeout_of_its_own(network):
    """A program that walks the list: every address ends in the kernel's ETIMEDOUT, as bare."""
    host, happy = check_no_timeout_of_its_own(network, lambda host: victim("walk", host.name, 7))
    check_equal(happy.output.splitlines(), [f"{address} ETIMEDOUT" for address in DEAD_FOUR], "what the program saw")
    check_equal(families(network.syns(host)), "6464", "SYNs")


@case(client_settings={"ipv4/tcp_syn_retries": 1})
def no_timeout_in_python(network):
    """socket.create_connection()."""
    script = "import socket,sys; socket.create_connection((sys.argv[1], 7))"
    check_no_timeout_of_its_own(network, lambda host: ["/usr/bin/python3", "-c", script, host.name])


@case("all-reset")
def everything_refused(network):
    """Every address answers by a reset: the program sees each one's errno, soon, and one SYN goes to each."""
    hosts, _, happy = compare_with_bare(network, lambda host: victim("walk", host.name, 7))
    check_between(happy.seconds(), 0, 0.5, "seconds")
    check_equal(families(network.syns(hosts[1])), "64", "SYNs")


@case("v6-unreachable", "v4-unreachable")
def everything_unreachable(network):
    """ICMP errors for every address."""
    _, _, happy = compare_with_bare(network, lambda host: victim("walk", host.name, 7))
    check_between(happy.seconds(), 0, 0.5, "seconds")


@case("v6-noroute", "v4-noroute")
def no_route_at_all(network):
    """Nothing can be sent: errno at once."""
    hosts, _, happy = compare_with_bare(network, lambda host: victim("walk", host.name, 7))
    check_between(happy.seconds(), 0, 0.5, "seconds")
    check_equal(network.syns(hosts[1]), [], "SYNs")


@case("v6-reset", "v4-drop", client_settings={"ipv4/tcp_syn_retries": 1})
def refused_and_silent(network):
    """One family refuses, the other is silent: the errno of each address is its own."""
    _, bare, happy = compare_with_bare(network, lambda host: victim("walk", host.name, 7))
    check_between(happy.seconds(), 0, bare.seconds() + SLACK_S, "seconds with libhappy")


def check_fails_as_soon(network):
    """A lookup that no nameserver answers ends as bare, and no later."""
    host = network.host("unknown")
    bare = network.run(victim("walk", host.name, 7))
    happy = network.run(victim("walk", host.name, 7), happy=True)
    check_equal((happy.status, happy.output), (bare.status, bare.output), "status and output")
    check_no_later(bare, happy)


@case("ns-unreachable")
def nameserver_unreachable(network):
    """No route to the nameserver: the lookup fails as soon as bare."""
    check_fails_as_soon(network)


@case("ns-refuses")
def nameserver_refuses(network):
    """Nothing listens at the nameserver's address."""
    check_fails_as_soon(network)
