"""Names looked up in a forked child, connected in the parent: raced if the parent finds the same, never otherwise."""

import os
import pathlib
import time

import hardening
from cases import LIGHT, REGISTRY, Case, case, check, check_between, check_equal, families, victim

ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}  # one dead address takes 3 s


@case("v6-drop", load=LIGHT, **ONE_RETRY)
def hint_from_child(network):
    """The parent's connect() is raced."""
    host = network.host("child")
    run = network.run(victim("resolves_in_child", "plain", host.name, 7), happy=True, trace=hardening.TRACE)
    check_equal((hardening.said(run, "connect"), hardening.said(run, "peer")), ("connected", host.ipv4[0]), "connect")
    check_between(float(hardening.said(run, "connect_ms")), 200, 500, "ms")
    check_equal((hardening.said(run, "fds_more"), hardening.said(run, "threads_more")), ("0", "0"), "leftovers")


@case(load=LIGHT, **ONE_RETRY)
def hint_in_healthy_network(network):
    """One SYN."""
    host = network.host("child")
    hardening.compare(network, "looked up in a child, healthy",
                      lambda host: victim("resolves_in_child", "plain", host.name, 7))
    check_equal(network.syns(host), [], "SYNs to nobody")


@case("v6-drop", load=LIGHT, **ONE_RETRY)
def hint_from_lynx(network):
    """lynx itself looks up in a child; its connect() is non-blocking."""
    host = network.host("lynx")
    network.run(["lynx", "-dump", f"http://{host.name}/"], happy=True, seconds=6)
    check_equal(families(network.accepts(host)), "4", "connections")


def not_believed(network, what, argument):
    """As bare: nothing but the address that the program named is connected to."""
    # The argument's place is taken by something that fits the run's own name.
    def command(host):
        return victim("resolves_in_child", what, host.name, 7, argument.replace("NAME", host.name[::-1]))

    hosts, _, _ = hardening.compare(network, f"hint: {what}", command)
    check("4" not in families(network.syns(hosts[1])), "raced")


for what, argument in (("setuid", ""), ("setgid", ""), ("caps", ""), ("rewrite", "2001:db8:2:d::77"), ("rename", "NAME"),
                       ("random", "")):
    REGISTRY[f"hint_{what}"] = Case(not_believed, ("v6-drop",), (what, argument), load=LIGHT, lab_options=ONE_RETRY)


@case("v6-drop", load=LIGHT, **ONE_RETRY)
def hint_unmapped_by_the_child(network):
    """What the child does to its own memory is its own affair."""
    host = network.host("child")
    run = network.run(victim("resolves_in_child", "unmap", host.name, 7), happy=True)
    check_equal(hardening.said(run, "connect"), "connected", f"connect ({run.output})")


@case("v6-drop", load=LIGHT, **ONE_RETRY)
def hint_of_a_name_that_has_changed(network):
    """The name no longer has the address that the parent connects to: its other addresses are not used."""
    hosts = [network.host(label) for label in ("bare", "happy")]
    runs = [network.start(victim("resolves_in_child", "wait", host.name, 7), happy=host is hosts[1], trace=hardening.TRACE)
            for host in hosts]
    for host in hosts:
        while not os.path.exists(f"/run/lab/ready-{host.name}"):
            time.sleep(0.01)
    for host in hosts:
        network.set_record(host.name, "AAAA", records=["2001:db8:2::99"])
        network.set_record(host.name, "A", records=["198.51.100.99"])
        pathlib.Path(f"/run/lab/go-{host.name}").touch()
    bare, happy = (run.wait(15) for run in runs)
    hardening.judge("hint: name has changed", hosts, bare, happy)
    check(not [syn for syn in network.find("syn") if syn["address"] in ("198.51.100.99", "2001:db8:2::99")], "raced")
