"""Unmodified XMPP clients behind SRV records: they log in at a real server and send a message, bare and with libhappy."""

import time

import hardening
import xmpp
from cases import case, check, check_equal, syns_to
from srv import REFUSED, set_srv
from topology import ADDRESSES, addresses, call

OWNER = f"_xmpp-client._tcp.{xmpp.DOMAIN}"
PATIENCE_S = 15
BARE_PATIENCE_S = 3  # a silent target holds a client for two minutes without libhappy
REFUSED_PATIENCE_S = 2  # both clients give up at once


def send(network, client, happy, patience_s):
    """Seconds until the server has the message; None: not within the patience."""
    before = xmpp.messages()
    program = network.start(xmpp.client(client), happy=happy, stdin=None)
    until = time.monotonic() + patience_s
    started = time.monotonic()
    while time.monotonic() < until:
        if xmpp.messages() > before:
            took = time.monotonic() - started
            program.wait(5)
            return took
        time.sleep(0.02)
    program.wait(0)
    return None


def tell(what, bare, happy):
    """Both times, side by side."""
    hardening.tell(what, *(f"{took:.2f} s" if took is not None else "not delivered" for took in (bare, happy)), True)


def compare(network, client, what):
    """Bare and with libhappy: delivered. (profanity looks at its socket less and less often while nothing is typed: a
    second that its connection takes costs it another one until the message is sent, bare too.)"""
    bare, happy = send(network, client, False, BARE_PATIENCE_S), send(network, client, True, PATIENCE_S)
    tell(f"{client}, {what}", bare, happy)
    check(happy is not None, f"{client}, {what}: no message; bare {bare}; log {xmpp.log_text()[-300:]!r}")


def group_refuses(network, client, spare):
    """A client that does not go on to a second group by itself does not with libhappy either: the same SYNs, the same end.
    Newer ones go on (profanity 0.15)."""
    port, refusing = xmpp.PORT, [network.host(f"refusing-{who}", addresses("live", number))
                                 for who, number in (("bare", 50), ("happy", 51))]
    took = []
    for host in refusing:
        answer_by_ipv4(host)
        set_srv(network, (0, 9, REFUSED, host.name), (5, 0, port, spare.name), owner=OWNER)
        took.append(send(network, client, host is refusing[1], REFUSED_PATIENCE_S))
    tell(f"{client}, first group refuses", *took)
    check_equal(took[1] is None, took[0] is None, "nothing delivered")
    tried = [[":" in address for address, _ in syns_to(network, host)] for host in refusing]
    check(tried[0], "bare: no SYN")
    check_equal(tried[1], tried[0], "whether SYNs are of IPv6, with libhappy")
    if took[0] is None:
        check_equal(syns_to(network, spare), [], "SYNs to the second group")


def answer_by_ipv4(host):
    """The servers' namespace has the host's IPv4 address: without it the replies of sockets that are not transparent,
    and resets, do not leave."""
    for address in host.ipv4:
        call("ip", "-n", "s", "address", "add", f"{address}/32", "dev", "lo")


def all_states(network, client):
    """The first target healthy, without IPv6, silent, refusing."""
    xmpp.start_server(network)
    good, spare = network.host("good"), network.host("spare")
    port = xmpp.PORT

    set_srv(network, (0, 9, port, good.name), (5, 0, port, spare.name), owner=OWNER)
    compare(network, client, "healthy")
    check_equal(syns_to(network, spare), [], "SYNs to the second group")

    half = network.host("half", [ADDRESSES["dead6"](30), ADDRESSES["live4"](40)])
    answer_by_ipv4(half)
    set_srv(network, (0, 9, port, half.name), (5, 0, port, spare.name), owner=OWNER)
    compare(network, client, "IPv6 of the first target dead")
    check_equal(syns_to(network, spare), [], "SYNs to the second group")

    silent, other = network.host("silent", addresses("dead", 20)), network.host("other")
    set_srv(network, (0, 60000, port, silent.name), (0, 0, port, other.name), (5, 0, port, spare.name), owner=OWNER)
    compare(network, client, "first target silent")
    check_equal(syns_to(network, spare), [], "SYNs to the second group")

    group_refuses(network, client, spare)


# spec: XMPP-2
@case(seconds=85)
def profanity_by_srv(network):
    """profanity (libstrophe: res_query()) in every state of the first target."""
    all_states(network, "profanity")


# spec: XMPP-2
@case(seconds=85)
def mcabber_by_srv(network):
    """mcabber (loudmouth: res_query()) in every state of the first target."""
    all_states(network, "mcabber")
