"""The prefix of a NAT64 as routers advertise it: heard by happy-pref64, which keeps it in a file, or by a program itself."""

import os

import nat64
import topology
from cases import case, check, check_equal
from nat64 import V6_NAMESERVER, check_reached, check_reached_unasked, translated_network


# spec: V6ONLY-3
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_advertised(network):
    """V6ONLY-3: what routers advertise is heard by happy-pref64 and used; a withdrawal counts at once."""
    host = translated_network(network)
    nat64.start_advertised(network)
    check_reached_unasked(network, host)
    nat64.advertise(f"{nat64.PREFIX}=0")
    nat64.wait_for(lambda: nat64.PREFIX not in nat64.stored(), "the withdrawal was not heard")
    run = network.run(["nc", "-z", host.ipv4[0], "80"], happy=True)
    check_equal(run.status, 1, "status after the withdrawal")


# spec: V6ONLY-3
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_listener_restarted(network):
    """happy-pref64 goes on from its file; a lifetime that has passed meanwhile is over."""
    translated_network(network)
    listener = nat64.start_listener(network)
    nat64.advertise(f"{nat64.PREFIX}=1800", "2001:db8:65::/96=8")
    nat64.wait_for(lambda: "2001:db8:65::/96" in nat64.stored(), "the advertisement was not heard")
    listener.kill()
    listener.wait()
    nat64.start_listener(network)
    check(nat64.PREFIX in nat64.stored(), f"the prefix is lost: {nat64.stored()}")
    nat64.wait_for(lambda: "2001:db8:65::/96" not in nat64.stored(), "the short lifetime does not end")
    check(nat64.PREFIX in nat64.stored(), "the other prefix went with it")


# spec: V6ONLY-3
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_two_routers(network):
    """V6ONLY-3: two routers on a link speak for themselves: a prefix holds until the last of them has withdrawn it."""
    host = translated_network(network)
    network.set_record("ipv4only.arpa", "AAAA", action="nxdomain")
    routers = [nat64.add_router(f"fe80::{n}") for n in (11, 12)]
    nat64.start_listener(network)

    def status(router, prefix, lifetime):
        nat64.advertise(f"{prefix}={lifetime}", source=router)
        nat64.wait_for(lambda: (lifetime > 0) == any(f"prefix {prefix} " in line and f" router {router} " in line
                                                     for line in nat64.stored().splitlines()), f"{router} was not heard")
        run = network.run(["nc", "-N", host.ipv4[0], "80"], happy=True)
        if run.status == 0:
            check_reached(network, host, run)
        return run.status

    check_equal(status(routers[0], nat64.PREFIX, 1800), 0, "status with one router")
    check_equal(status(routers[1], nat64.PREFIX, 1800), 0, "status with two")
    check_equal(status(routers[0], nat64.PREFIX, 0), 0, "status with the second one alone")
    # The latest is tried first; it leads nowhere.
    check_equal(status(routers[0], "2001:db8:2:d::/96", 1800), 0, "status with two prefixes")


# spec: V6ONLY-3
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_two_interfaces(network):
    """V6ONLY-3: what is advertised on two links holds for each; a link that goes down takes its own along."""
    host = translated_network(network)
    network.set_record("ipv4only.arpa", "AAAA", action="nxdomain")
    nat64.add_link()
    nat64.start_listener(network)

    def reached():
        run = network.run(["nc", "-N", host.ipv4[0], "80"], happy=True)
        if run.status == 0:
            check_reached(network, host, run)
        return run.status == 0

    for interface in ("r0", "r2"):
        nat64.advertise(f"{nat64.PREFIX}=1800", interface=interface)
    nat64.wait_for(lambda: nat64.stored().count(nat64.PREFIX) == 2, "one of the links was not heard")
    check(reached(), "not reached with two links")
    nat64.advertise(f"{nat64.PREFIX}=0", interface="r0")
    nat64.wait_for(lambda: nat64.stored().count(nat64.PREFIX) == 1, "the withdrawal was not heard")
    check(reached(), "not reached with the second link's alone")
    topology.call("ip", "-n", "c", "link", "set", "c1", "down")
    nat64.wait_for(lambda: nat64.PREFIX not in nat64.stored(), "the lost link was not noticed")
    check(not reached(), "the prefix of a link that is down is used")


HEARS = """
import errno, socket, sys, threading, time
literal, raced = sys.argv[1:]
def race():  # a dead address first: for as long as this goes on the hidden thread lives
    while True:
        try:
            socket.create_connection((raced, 80)).close()
        except OSError:
            pass
threading.Thread(target=race, daemon=True).start()
def until(wanted):
    seen = None
    while seen != wanted:
        with socket.socket() as s:
            seen = s.connect_ex((literal, 80))
        time.sleep(0.02)
    print(errno.errorcode.get(seen, "connected"), flush=True)
until(errno.ENETUNREACH)
until(0)
until(errno.ENETUNREACH)
"""


# spec: V6ONLY-3
@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_heard_by_itself(network):
    """V6ONLY-3: without happy-pref64 a program hears routers while its hidden thread lives, withdrawals as well."""
    host = translated_network(network)
    network.set_record("ipv4only.arpa", "AAAA", action="nxdomain")
    raced = network.host("raced", addresses=["2001:db8:2:d::10", "2001:db8:2::10"])
    program = network.start(["/usr/bin/python3", "-c", HEARS, host.ipv4[0], raced.name], happy=True)

    def printed(line, lines):
        nat64.wait_for(lambda: program.output_path.read_text().split() == lines, f"no {line!r}")

    printed("ENETUNREACH", ["ENETUNREACH"])
    nat64.wait_for(lambda: "listening" in program.trace.read_text(), "nobody listens")
    nat64.advertise(f"{nat64.PREFIX}=1800")
    printed("connected", ["ENETUNREACH", "connected"])
    nat64.advertise(f"{nat64.PREFIX}=0")
    run = program.wait(10)
    check_equal((run.status, run.output.split()[2:]), (0, ["ENETUNREACH"]), "after the withdrawal")


@case("no-ipv4", nameservers=V6_NAMESERVER)
def nat64_file_not_believed(network):
    """A state file that anybody could have written, that is cut off or another network's: no prefix, no crash."""
    host = translated_network(network)
    network.set_record("ipv4only.arpa", "AAAA", action="nxdomain")
    nat64.start_listener(network).kill()
    nat64.advertise(f"{nat64.PREFIX}=1800")
    path = next(path for path in nat64.FOLDER.iterdir() if not path.name.endswith(".new"))
    good = (f"happy-pref64 1 network {path.name}\nprefix {nat64.PREFIX} interface 2 router fe80::1 "
            "expires 999999999\nend\n")

    def status(text=good, mode=0o644, owner=0, folder_mode=0o755, wrapper=()):
        path.write_text(text, encoding="ascii")
        path.chmod(mode)
        os.chown(path, owner, owner)
        nat64.FOLDER.chmod(folder_mode)
        return network.run([*wrapper, "nc", "-z", host.ipv4[0], "80"], happy=True).status

    check_equal(status(), 0, "status with a good file")
    check_equal(status(mode=0o666), 1, "status with a file writable by all")
    check_equal(status(owner=1), 1, "status with somebody else's file")
    check_equal(status(folder_mode=0o777), 1, "status with a folder writable by all")
    check_equal(status(text=good[:-5]), 1, "status with a file cut off")
    check_equal(status(text="\x7f" * 5000), 1, "status with rubbish")
    check_equal(status(text=""), 1, "status with an empty file")
    check_equal(status(text=good.replace(path.name, "1")), 1, "status with another network's file")
    check_equal(status(text=good.replace("999999999", "1")), 1, "status with a lifetime that is over")
    check_equal(status(mode=0, wrapper=("setpriv", "--bounding-set=-dac_override,-dac_read_search")), 1,
                "status with a file that cannot be read")
    check_equal(status(), 0, "status with a good file again")
    path.unlink()
    path.symlink_to("/run/lab/home/stolen")
    check_equal(network.run(["nc", "-z", host.ipv4[0], "80"], happy=True).status, 1, "status with a symbolic link")


# spec: V6ONLY-3
@case("no-ipv4", nameservers=V6_NAMESERVER)
def case_46_advertised_before_dns(network):
    """C46 (a): the nameserver is silent about ipv4only.arpa, a router tells the prefix: nobody waits for DNS."""
    host = translated_network(network)
    network.set_record("ipv4only.arpa", "AAAA", action="drop")
    nat64.start_advertised(network)
    for _ in range(3):
        run = network.run(["nc", "-N", host.ipv4[0], "80"], happy=True)
        check_reached(network, host, run, 0.5)
