"""The order of addresses is the one of libc's getaddrinfo(), over generated addresses and routes.

Each round gives the client other addresses (of all scopes; deprecated, home, on several interfaces, tunnels among them)
and other routes, and asks the same process, bare and with libhappy, for names whose addresses are drawn from the same
ranges. A difference shows with the round's commands; the rounds are the same at every run.
"""

import os
import random
import subprocess

import lab
import sanitizer
import topology
from cases import VICTIMS, case, check

ROUNDS = int(os.environ.get("HAPPY_ORDER_ROUNDS", "1000"))
FIRST_ROUND = int(os.environ.get("HAPPY_ORDER_FIRST", "0"))
NAMES, NAMES_A_ROUND = 300, 3
SHOWN = 5  # differences; more say no more
ARPHRD_SIT, ARPHRD_TUNNEL6 = 776, 769
CABLES, TUNNELS = ("v0", "v1", "v2"), {"t0": ARPHRD_SIT, "t1": ARPHRD_TUNNEL6}
DEVICES = (*CABLES, *TUNNELS)
RANGES6 = ("2001:db8:1", "2001:db8:2", "2a00:1450", "fd00:1:2", "fd12:3456:789a", "2002:c000:204", "2001:0:4136", "fe80:",
           "fec0:", "3ffe:1")
RANGES4 = ("10.1.2", "10.1.3", "10.200.0", "192.168.7", "169.254.8", "172.16.9", "198.51.100", "203.0.113", "100.64.1")


def _address6(dice):
    part = f"{dice.choice(RANGES6)}:"
    middle = f"{dice.randrange(1, 4)}:" if dice.random() < 0.3 and not part.endswith("::") else ""
    return f"{part}{middle}:{dice.choice((1, 2, 3, 0x80, 0xff00)):x}".replace(":::", "::")


def _address4(dice):
    return f"{dice.choice(RANGES4)}.{dice.choice((1, 2, 3, 64, 129, 200))}"


def _destinations(dice):
    """(AAAA, A) of a name."""
    six = [_address6(dice) for _ in range(dice.randrange(0, 5))]
    four = [_address4(dice) for _ in range(dice.randrange(0, 4))] or ["10.1.2.3"]
    if dice.random() < 0.05:
        six.append("::1")
    if dice.random() < 0.05:
        four.append("127.0.0.3")
    return list(dict.fromkeys(six)), list(dict.fromkeys(four))


def _own_address(dice, device):
    """The command that gives the client an address."""
    if dice.random() < 0.55:
        words = f"{_address6(dice)}/{dice.choice((48, 64, 64, 64, 128))} dev {device} nodad"
        words += " home" if dice.random() < 0.1 else ""
    else:
        words = f"{_address4(dice)}/{dice.choice((8, 16, 24, 24, 28, 32))} dev {device}"
    return f"addr add {words}" + (" preferred_lft 0" if dice.random() < 0.2 else "")


def _route(dice, six):
    """The command that adds a route."""
    to = dice.choice(("default", "default", f"{_address6(dice)}/{dice.choice((32, 48, 64, 128))}" if six
                      else f"{_address4(dice)}/{dice.choice((16, 24, 32))}"))
    way = f"dev {dice.choice(DEVICES)}" if dice.random() < 0.85 else ""
    kind = "" if way else dice.choice(("unreachable ", "prohibit ", "blackhole ", "throw "))
    return f"route add {kind}{to} {way} metric {dice.randrange(1, 9999)}"


def _commands(dice):
    """{family: commands} of one round, what was there before taken away."""
    devices = dice.sample(DEVICES, dice.randrange(1, 4))
    own = [_own_address(dice, dice.choice(devices)) for _ in range(dice.randrange(0, 7))]
    six, four = ([_route(dice, is_six) for _ in range(dice.randrange(0, 5))] for is_six in (True, False))
    cleared = [f"addr flush dev {device}" for device in DEVICES] + ["route flush table main"]
    return {"-4": [*cleared, *(word for word in own if ":" not in word), *four],
            "-6": [*cleared, *(word for word in own if ":" in word), *six]}


class _Asker:
    """A process that answers for as long as it is asked."""

    def __init__(self, environment):
        settings = [f"{key}={value}" for key, value in environment.items()]
        self._process = subprocess.Popen(["ip", "netns", "exec", "c", "env", *settings, str(VICTIMS / "orders")],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, names):
        """A line for each name."""
        self._process.stdin.write("".join(f"{name}\n" for name in names))
        self._process.stdin.flush()
        return [self._process.stdout.readline().strip() for _ in names]


def _set_up(network):
    """The devices, and a nameserver on the client's own loopback, which no round can take away."""
    topology.call("ip", "-n", "c", "-batch", "-", stdin="link del c0\n" + "".join(
        f"link add {name} type veth peer name {name}p\nlink set {name}p addrgenmode none up\n" for name in CABLES))
    network.start_daemon("c", lab.PYTHON, "-IS", lab.HERE / "tunnels.py", *(f"{k}={v}" for k, v in TUNNELS.items()))
    network.start_daemon("c", lab.PYTHON, "-IS", lab.HERE / "dns_server.py", "/run/lab/zone.json", "127.0.0.1")
    network.wait_ready()
    topology.call("ip", "-n", "c", "-batch", "-", stdin="".join(
        f"link set {name} addrgenmode none up\n" for name in DEVICES))
    with open("/etc/resolv.conf", "w", encoding="ascii") as resolv:
        resolv.write("nameserver 127.0.0.1\n")


# spec: SORT-1
@case(seconds=300)
def address_order_is_libcs(network):
    """A thousand sets of addresses and routes."""
    _set_up(network)
    dice = random.Random(6724)
    names = [f"n{number}.test" for number in range(NAMES)]
    for name in names:
        six, four = _destinations(dice)
        network._zone[name] = {"AAAA": {"records": six}, "A": {"records": four}}  # pylint: disable=protected-access
    network._write_zone()  # pylint: disable=protected-access
    trace = {"HAPPY_TRACE": str(network.folder / "orders.trace")} if ROUNDS <= 10 else {}
    askers = [_Asker({}), _Asker({**sanitizer.preload(lab.LIBRARY), "HAPPY_PARTIAL": "0", **trace})]
    differences, answers, orders = [], 0, set()
    for number in range(FIRST_ROUND, FIRST_ROUND + ROUNDS):
        dice = random.Random(number)
        commands = _commands(dice)
        for family, lines in commands.items():  # what the kernel refuses is not there for both
            subprocess.run(["ip", family, "-n", "c", "-force", "-batch", "-"], input="\n".join(lines), text=True,
                           capture_output=True, check=False)
        asked = dice.sample(names, NAMES_A_ROUND)
        bare, happy = (asker.ask(asked) for asker in askers)
        orders.update(zip(asked, bare))
        answers += sum(line.startswith("0 ") for line in bare)
        differences += [f"round {number}, {name}\n    bare:  {one}\n    happy: {other}\n    "
                        + "\n    ".join(line for lines in commands.values() for line in lines if "add" in line)
                        for name, one, other in zip(asked, bare, happy) if one != other]
    (network.folder / "differences").write_text("\n".join(differences), encoding="ascii")
    check(not differences, f"{len(differences)} of {ROUNDS * NAMES_A_ROUND} differ:\n" + "\n".join(differences[:SHOWN]))
    check(answers == ROUNDS * NAMES_A_ROUND, f"only {answers} answers")
    # The rounds do move the order: most names have been seen in several.
    check(ROUNDS < 1000 or len(orders) > 3 * NAMES, f"only {len(orders)} orders")
