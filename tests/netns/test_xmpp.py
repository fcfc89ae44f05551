"""Unmodified XMPP clients behind SRV records: they log in at a real server and send a message, bare and with libhappy."""

import time

import xmpp
from cases import case, check, check_equal
from test_service import addresses, syns_to
from test_srv import set_srv
from topology import ADDRESSES, call

OWNER = f"_xmpp-client._tcp.{xmpp.DOMAIN}"
BARE_PATIENCE_S = 6  # a silent target holds a client for two minutes without libhappy


def send(network, client, happy):
    """Seconds until the server has the message; None: not within the patience."""
    before = xmpp.messages()
    program = network.start(xmpp.client(client), happy=happy, stdin=None)
    until = time.monotonic() + (15 if happy else BARE_PATIENCE_S)
    started = time.monotonic()
    while time.monotonic() < until:
        if xmpp.messages() > before:
            took = time.monotonic() - started
            program.wait(5)
            return took
        time.sleep(0.02)
    program.wait(0)
    return None


def compare(network, client, what):
    """Bare and with libhappy, side by side in the lab's folder."""
    bare, happy = send(network, client, False), send(network, client, True)
    shown = [f"{took:.2f} s" if took is not None else "not delivered" for took in (bare, happy)]
    with open(network.folder / "times", "a", encoding="ascii") as times:
        times.write(f"{client:10} {what:28} bare {shown[0]:14} libhappy {shown[1]}\n")
    check(happy is not None, f"{client}, {what}: no message; bare {bare}; log {xmpp.log_text()[-300:]!r}")


def all_states(network, client):
    """The first target healthy, without IPv6, silent."""
    xmpp.start_server(network)
    good, spare = network.host("good"), network.host("spare")
    port = xmpp.PORT

    set_srv(network, (0, 9, port, good.name), (5, 0, port, spare.name), owner=OWNER)
    compare(network, client, "healthy")
    check_equal(syns_to(network, spare), [], "SYNs to the second group")

    # Without it prosody's replies by IPv4 do not leave: its sockets are not transparent.
    call("ip", "-n", "s", "address", "add", f"{ADDRESSES['live4'](40)}/32", "dev", "lo")
    half = network.host("half", [ADDRESSES["dead6"](30), ADDRESSES["live4"](40)])
    set_srv(network, (0, 9, port, half.name), (5, 0, port, spare.name), owner=OWNER)
    compare(network, client, "IPv6 of the first target dead")
    check_equal(syns_to(network, spare), [], "SYNs to the second group")

    silent, other = network.host("silent", addresses("dead", 20)), network.host("other")
    set_srv(network, (0, 60000, port, silent.name), (0, 0, port, other.name), (5, 0, port, spare.name), owner=OWNER)
    compare(network, client, "first target silent")
    check_equal(syns_to(network, spare), [], "SYNs to the second group")


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
