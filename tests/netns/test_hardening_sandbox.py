"""Sandboxes, namespaces, privileges, in and after a race: no thread, no call, no privilege that bare has not."""

import hardening
from cases import REGISTRY, Case, victim

ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}  # one dead address takes 3 s


def sandboxed(network, when, by, action, rules):
    """The program lives, and connects, as bare."""
    def command(host):
        return victim("sandbox", when, by, action, rules, host.name, 7)

    item = f"seccomp {rules}, {action}, {when}{'' if by == 'prctl' else ', ' + by}"
    hardening.compare(network, item, command, sooner=True)


def sandboxed_from_outside(network, action):
    """A filter that was there before the program."""
    def command(host):
        return victim("sandbox", "outside", "-", action, "thread", *victim("walk", host.name, 7))

    hardening.compare_result(network, f"seccomp thread, {action}, outside", command)


for when in ("early", "between", "late", "racing"):
    for by in ("prctl", "syscall") if when != "racing" else ("syscall",):
        for action in ("kill", "errno", "trap"):
            for rules in ("thread", "strict") if when in ("between", "late") else ("thread",):
                name = f"seccomp_{when}_{by}_{action}_{rules}"
                REGISTRY[name] = Case(sandboxed, ("v6-drop",), (when, by, action, rules), lab_options=ONE_RETRY)
for action in ("kill", "errno", "trap"):
    REGISTRY[f"seccomp_outside_{action}"] = Case(sandboxed_from_outside, ("v6-drop",), (action,), lab_options=ONE_RETRY)


# Of the victim, and how it is called in the table.
OPTIONS = {(): "", ("-t",): ", had a thread", ("-2",): ", second race"}


def namespaces(network, what, options):
    """What needs one thread, or is done to one."""
    def command(host):
        return victim("namespaces", what, *options, host.name, 7)

    hardening.compare(network, f"{what}{OPTIONS[options]}, after a race", command, sooner=True)


for what in ("user", "userns", "mnt", "net", "setns", "setuid", "capset", "rawcaps"):
    for options, label in ((), "alone"), (("-t",), "threads"), (("-2",), "twice"):
        faults = ("v6-drop", "v4-slow=900") if what == "setuid" else ("v6-drop",)
        REGISTRY[f"namespaces_{what}_{label}"] = Case(
            namespaces, faults, (what, options), lab_options=ONE_RETRY)
