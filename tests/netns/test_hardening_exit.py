"""Processes and threads that end in the middle of a race."""

import os
import re

import hardening
import sanitizer
from cases import HEAVY, NORMAL, REGISTRY, Case, case, check, check_equal, victim

COUNT, SEED = 1000, int(os.environ.get("HAPPY_TEST_SEED", "20261129"))
# Whoever ends waits for a processor as long as all the others' ends take: with a sanitizer's 9 ms each (3 bare, at the
# same time), 120 of them on two processors are about the second from which on one is called late.
AT_ONCE = 120 // sanitizer.TIME_FACTOR


def exit_storm(network, how, who):
    """A thousand processes end in mid-race: same status, same handlers run, nobody hangs."""
    def command(host):
        return victim("exits", how, who, COUNT, AT_ONCE, SEED, host.name, 7)

    hosts, bare, _ = hardening.compare(network, f"{how} in mid-race, a thousand times ({who})", command, seconds=50,
                                       slack_s=10)
    check_equal(hardening.said(bare, "late"), "0", "late ones, bare")
    check(len(network.syns(hosts[1])) > COUNT, "hardly any race began")


for how in ("exit", "quick_exit", "_exit", "return", "pthread_exit"):
    for who in ("thread", "handler", "poll"):
        if who == "thread" or how == "exit" or (who == "handler" and how in ("quick_exit", "_exit")):
            load = HEAVY if sanitizer.USED else NORMAL
            REGISTRY[f"storm_{how}_{who}"] = Case(exit_storm, ("all-dead",), (how, who), load=load, seconds=60)


def cancel(network, where, *options):
    """A hundred threads cancelled at random moments."""
    def command(host):
        return victim("cancelled", *options, where, 100, 20, SEED, host.name, 7)

    hosts, bare, happy = hardening.run_both(network, command, seconds=35)
    if where != "connect":
        # libc can lose the socket that a cancelled getaddrinfo() has just made.
        check_equal(hardening.said(happy, "fds_more"), "0", "descriptors left")
        bare.output = re.sub(r"^fd_.*\n", "", re.sub(r"^fds_more [1-3]$", "fds_more 0", bare.output, flags=re.M), flags=re.M)
    hardening.judge(" ".join([f"pthread_cancel in {where}, a hundred times", *options]), hosts, bare, happy, slack_s=3)


@case("v6-drop", "v4-slow=600")
def cancel_in_connect(network):
    """IPv6 dead, IPv4 slow: races run for most of the time."""
    cancel(network, "connect")


@case("v6-drop", "v4-slow=600")
def cancel_in_driven_connect(network):
    """The same where no thread can be made, as a handler might be running, and the caller looks after its race."""
    cancel(network, "connect", "-n")


@case("all-dead")
def cancel_in_connect_all_dead(network):
    """Races that nobody wins."""
    cancel(network, "connect")


@case("aaaa-late=400", "a-late=300")
def cancel_in_lookup(network):
    """Answers that take their time."""
    cancel(network, "getaddrinfo")


@case("aaaa-silent", "a-silent")
def cancel_in_silent_lookup(network):
    """Answers that do not come: a cancelled thread does not wait for them."""
    cancel(network, "getaddrinfo")


@case("v6-drop", "v4-slow=600", "aaaa-late=100")
def cancel_in_either(network):
    """One after the other."""
    cancel(network, "either")
