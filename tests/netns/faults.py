"""The faults a lab network can have, by name, in one table; faults combine."""

import difflib
import functools
from dataclasses import dataclass, field

# What the router's firewall matches: the first packet of a TCP connection on its way to the servers. DNS over TCP
# is spared, so that a fault of the path is not also one of the lookup.
_SYN = "tcp flags syn / fin,syn,rst,ack tcp dport != 53"
_SYN6 = f"meta nfproto ipv6 {_SYN}"
_SYN4 = f"meta nfproto ipv4 {_SYN}"
# HAPPY_SWAP_MARK of shim/abi.h: what the program's own attempts carry under HAPPY_FORCE=swap.
_OWN_SYN = "meta mark 0x68617070 tcp flags syn / fin,syn,rst,ack"


@dataclass(frozen=True)
class Fault:
    """What one fault changes in a healthy lab."""

    forward_rules: tuple = ()  # nft rules of the router, behind the delay line
    client_commands: tuple = ()  # `ip` commands run in the client
    client_rules: tuple = ()  # nft rules for what the client sends, over every device, loopback included
    delays: dict = field(default_factory=dict)  # prefix -> "ONE_WAY_MS[,LOSS_PERCENT]" on the delay line
    answers: dict = field(default_factory=dict)  # record type -> what the DNS server does with it
    endpoints: tuple = ()  # what a name's addresses are, in this order; () = one live address per family
    dead_nameserver: bool = False  # the first of two nameservers is silent


def number(text):
    """A number of ms or percent; ValueError if it is none, or less than nothing."""
    value = float(text)
    if not 0 <= value <= 600_000:  # ten minutes: nothing in the lab lives longer
        raise ValueError
    return value


def _fixed(**changes):
    return functools.partial(Fault, **changes)


def _slow(prefix):
    return lambda rtt_ms: Fault(delays={prefix: f"{number(rtt_ms) / 2}"})


def _ladder(text):
    start, step = map(number, text.replace("-", "").split(","))
    start *= -1 if text.startswith("-") else 1
    rtt = {n: 20 + start + step * n for n in range(1, 53)}
    return Fault(delays={f"2001:db8:2::{n:x}/128": f"{ms / 2}" for n, ms in rtt.items()})


def _lossy(prefix):
    return lambda percent: Fault(delays={prefix: f"10,{number(percent)}"})


def _late(record_type):
    return lambda delay_ms: Fault(answers={record_type: {"delay_ms": number(delay_ms)}})


def _answer(record_type, action):
    return _fixed(answers={record_type: {"action": action}})


_V6, _V4 = "2001:db8:2::/64", "198.51.100.0/25"

# name, parameter (or ""), meaning, maker
TABLE = (
    ("healthy", "", "nothing is wrong", _fixed()),
    ("v6-drop", "", "IPv6 SYNs vanish", _fixed(forward_rules=(f"{_SYN6} drop",))),
    ("v6-reset", "", "IPv6 SYNs are answered by a reset", _fixed(forward_rules=(f"{_SYN6} reject with tcp reset",))),
    ("v6-unreachable", "", "a router answers IPv6 SYNs: address unreachable",
     _fixed(forward_rules=(f"{_SYN6} reject with icmpv6 addr-unreachable",))),
    ("v6-prohibited", "", "a router answers IPv6 SYNs: administratively prohibited",
     _fixed(forward_rules=(f"{_SYN6} reject with icmpv6 admin-prohibited",))),
    ("v6-noroute", "", "the client has an IPv6 address but no route", _fixed(client_commands=("route del ::/0",))),
    ("v6-none", "", "the client has no IPv6 address", _fixed(client_commands=("-6 addr flush dev c0",))),
    ("v4-none", "", "the client has no IPv4 address", _fixed(client_commands=("-4 addr flush dev c0",))),
    ("v6-unreachable-route", "", "the client's own IPv6 route says unreachable",
     _fixed(client_commands=("route replace unreachable 2001:db8:2::/64",))),
    ("v6-slow", "MS", "the IPv6 round trip takes MS", _slow(_V6)),
    ("v6-ladder", "START,STEP", "the IPv6 round trip to the Nth name takes START + N x STEP ms more than IPv4's", _ladder),
    ("v6-loss", "PERCENT", "so many IPv6 packets are lost, each way", _lossy(_V6)),
    ("v4-drop", "", "IPv4 SYNs vanish", _fixed(forward_rules=(f"{_SYN4} drop",))),
    ("v4-reset", "", "IPv4 SYNs are answered by a reset", _fixed(forward_rules=(f"{_SYN4} reject with tcp reset",))),
    ("v4-unreachable", "", "a router answers IPv4 SYNs: host unreachable",
     _fixed(forward_rules=(f"{_SYN4} reject with icmp host-unreachable",))),
    ("v4-noroute", "", "the client has an IPv4 address but no route to the servers",
     _fixed(client_commands=("route add 198.51.100.53 via 192.0.2.1", "route add throw 198.51.100.0/25"))),
    ("no-ipv4", "", "the client has no IPv4 address (IPv6-only)",
     _fixed(client_commands=("addr del 192.0.2.2/24 dev c0",))),
    ("v4-slow", "MS", "the IPv4 round trip takes MS", _slow(_V4)),
    ("v4-loss", "PERCENT", "so many IPv4 packets are lost, each way", _lossy(_V4)),
    ("rtt", "MS", "every round trip to a server takes MS (else 20)",
     lambda ms: Fault(delays={prefix: f"{number(ms) / 2}" for prefix in ("0.0.0.0/0", "::/0")})),
    ("own-drop", "", "SYNs of the program's own attempts vanish, on the loopback too (with HAPPY_FORCE=swap)",
     _fixed(client_rules=(f"{_OWN_SYN} drop",))),
    ("first-address-dead", "", "names have two AAAA and two A, only the last A works",
     _fixed(endpoints=("dead6", "dead6", "dead4", "live4"))),
    ("all-dead", "", "all SYNs vanish", _fixed(forward_rules=(f"{_SYN} drop",))),
    ("all-reset", "", "all SYNs are answered by a reset", _fixed(forward_rules=(f"{_SYN} reject with tcp reset",))),
    ("aaaa-silent", "", "AAAA queries are never answered", _answer("AAAA", "drop")),
    ("aaaa-late", "MS", "AAAA answers come MS late", _late("AAAA")),
    ("aaaa-servfail", "", "AAAA queries get SERVFAIL", _answer("AAAA", "servfail")),
    ("aaaa-none", "", "names have no AAAA", _answer("AAAA", "nodata")),
    ("a-silent", "", "A queries are never answered", _answer("A", "drop")),
    ("a-late", "MS", "A answers come MS late", _late("A")),
    ("dns-truncated", "", "DNS answers over UDP are truncated",
     _fixed(answers={"AAAA": {"action": "truncate"}, "A": {"action": "truncate"}})),
    ("dns-garbage", "", "AAAA answers are garbage", _answer("AAAA", "garbage")),
    ("ns-dead", "", "the first of two nameservers is silent", _fixed(dead_nameserver=True)),
    ("ns-unreachable", "", "the client has no route to the nameserver",
     _fixed(client_commands=("route add throw 198.51.100.53",))),
    ("ns-refuses", "", "a router answers queries: port unreachable",
     _fixed(forward_rules=("udp dport 53 reject",))),
)


def find(text):
    """The fault that `text` names ("v6-drop", "v6-slow=300"); ValueError says what is wrong with it."""
    name, equals, value = text.partition("=")
    for known, parameter, _, make in TABLE:
        if known != name:
            continue
        if bool(equals) != bool(parameter):
            raise ValueError(f"{name} takes {'=' + parameter if parameter else 'no value'}")
        try:
            return make(value) if parameter else make()
        except ValueError:
            raise ValueError(f"{name}={value}: {parameter} is a number") from None
    near = difflib.get_close_matches(name, [row[0] for row in TABLE], cutoff=0.5)
    raise ValueError(f"no fault is called '{name}'" + (f"; near to it: {', '.join(near)}" if near else ""))


def combine(texts):
    """One Fault with the changes of all the named ones."""
    combined = Fault()
    for fault in map(find, texts):
        combined = Fault(
            combined.forward_rules + fault.forward_rules,
            combined.client_commands + fault.client_commands,
            combined.client_rules + fault.client_rules,
            {**combined.delays, **fault.delays},
            {**combined.answers, **fault.answers},
            combined.endpoints + fault.endpoints,
            combined.dead_nameserver or fault.dead_nameserver,
        )
    return combined
