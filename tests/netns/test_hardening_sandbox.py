"""Sandboxes, namespaces, privileges, in and after a race: no thread, no call, no privilege that bare has not."""

import hardening
from cases import LIGHT, REGISTRY, Case, case, check_equal, families, victim
from topology import OWN_V4, OWN_V6

ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}  # one dead address takes 3 s


def sandboxed(network, when, by, action, rules):
    """The program lives, and connects, as bare."""
    def command(host):
        return victim("sandbox", when, by, action, rules, host.name, 7)

    item = f"seccomp {rules}, {action}, {when}{'' if by == 'prctl' else ', ' + by}"
    hardening.compare(network, item, command, sooner=True)


@case("v6-drop", load=LIGHT, **ONE_RETRY)
def seccomp_outside_errno(network):
    """A filter that was there before the program. (One that kills is a limit: nothing tells the library of it.)"""
    def command(host):
        return victim("sandbox", "outside", "-", "errno", "thread", *victim("walk", host.name, 7))

    hardening.compare_result(network, "seccomp thread, errno, outside", command)


def asked_for(network, by):
    """Whoever only asks whether the kernel has sandboxes is in none: raced as ever."""
    host = network.host("asks")
    run = network.run(victim("sandbox", "asks", by, "-", "-", host.name, 7), happy=True)
    check_equal((run.status, run.output), (0, "echo works\n"), "the program")
    check_equal(families(network.syns(host)), "64", "SYNs")


for by in ("prctl", "syscall"):
    REGISTRY[f"seccomp_asked_for_by_{by}"] = Case(asked_for, ("v6-drop",), (by,), load=LIGHT)

for when in ("early", "between", "late", "racing"):
    for by in {"racing": ("syscall",), "between": ("prctl", "syscall", "wide")}.get(when, ("prctl", "syscall")):
        for action in ("kill", "errno", "trap"):
            for rules in ("thread", "strict") if when in ("between", "late") else ("thread",):
                name = f"seccomp_{when}_{by}_{action}_{rules}"
                REGISTRY[name] = Case(sandboxed, ("v6-drop",), (when, by, action, rules), load=LIGHT,
                                      lab_options=ONE_RETRY)


# Of the victim, and how it is called in the table.
OPTIONS = {(): "", ("-t",): ", had a thread", ("-2",): ", second race"}


def namespaces(network, what, options):
    """What needs one thread, or is done to one."""
    def command(host):
        return victim("namespaces", what, *options, host.name, 7)

    hardening.compare(network, f"{what}{OPTIONS[options]}, after a race", command, sooner=True)


for what in ("user", "userns", "mnt", "net", "setns", "setuid", "capset", "rawcaps", "landlock"):
    for options, label in ((), "alone"), (("-t",), "threads"), (("-2",), "twice"):
        faults = ("v6-drop", "v4-slow=900") if what == "setuid" else ("v6-drop",)
        REGISTRY[f"namespaces_{what}_{label}"] = Case(
            namespaces, faults, (what, options), load=LIGHT, lab_options=ONE_RETRY)


def one_thread_elsewhere(network, what):
    """One thread alone has gone into another network, or may not connect: what it and the rest connect to is as bare."""
    def command(host):
        return victim("namespaces", what, host.name, 7)

    hosts, _, happy = hardening.compare(network, f"{what}, races of two threads", command, sooner=True,
                                        environment={"HAPPY_TRACE": f"/run/lab/{what}.trace"})  # and so more slowly
    check_equal(hardening.said(happy, "here"), "echo", "the thread that stayed")
    wanted = ["c", "s"] if what == "thread-setns" else ["c"]
    check_equal(sorted({"c" if a["peer"] in (OWN_V4, OWN_V6) else "s" for a in network.accepts(hosts[1])}), wanted,
                "namespaces that connections come from")


for what in ("thread-net", "thread-setns", "thread-landlock"):
    REGISTRY[f"namespaces_{what.replace('-', '_')}"] = Case(one_thread_elsewhere, ("v6-drop",), (what,), load=LIGHT,
                                                            lab_options=ONE_RETRY)
