"""Everything at once, in a network where endpoints die and come back at random.

run.py's --storm-seconds (20) and --seed set how long and which; a failure names the seed.
"""

import os
import random
import threading

import hardening
import topology
from cases import HEAVY, REGISTRY, Case, check, check_equal, victim

SECONDS = int(os.environ.get("HAPPY_TEST_STORM_SECONDS", "20"))
BARE_SECONDS = min(SECONDS, 5)  # tells only whether the victim itself is right
SEED = int(os.environ.get("HAPPY_TEST_SEED", "20261129"))
THREADS, NAMES = 64, 8
CHANGE_SECONDS = 0.15
STYLES = {"blocking": (), "mixed": ("-m",)}  # how connects wait: options of the victim

RULES = """
table inet storm {
    set dropped4 { type ipv4_addr; }
    set dropped6 { type ipv6_addr; }
    set reset4 { type ipv4_addr; }
    set reset6 { type ipv6_addr; }
    chain forward {
        type filter hook forward priority 1; policy accept;
        iifname != "tb" accept
        tcp flags syn / fin,syn,rst,ack ip daddr @dropped4 drop
        tcp flags syn / fin,syn,rst,ack ip6 daddr @dropped6 drop
        tcp flags syn / fin,syn,rst,ack ip daddr @reset4 reject with tcp reset
        tcp flags syn / fin,syn,rst,ack ip6 daddr @reset6 reject with tcp reset
    }
}
"""


def weather(rng, addresses):
    """nft commands after which each address is alive, silent, or refuses, at random."""
    lines = []
    for family in "46":
        lines += [f"flush set inet storm {kind}{family}" for kind in ("dropped", "reset")]
    for address in addresses:
        kind = rng.choice(("alive", "alive", "dropped", "reset"))
        if kind != "alive":
            lines.append(f"add element inet storm {kind}{'6' if ':' in address else '4'} {{ {address} }}")
    return "\n".join(lines)


def storm(network, happy, style):
    """64 threads, of blocking connects alone or mixed; no token is lost, nothing is left, no file of the program's own is touched."""
    hosts = [network.host(f"n{number}") for number in range(NAMES)]
    addresses = [address for host in hosts for address in host.addresses()]
    topology.call("ip", "netns", "exec", "r", "nft", "-f", "-", stdin=RULES)
    rng, over = random.Random(SEED), threading.Event()

    def change():
        while not over.wait(CHANGE_SECONDS):
            topology.call("ip", "netns", "exec", "r", "nft", "-f", "-", stdin=weather(rng, addresses))

    changer = threading.Thread(target=change)
    changer.start()
    names = [",".join([host.name, *host.addresses()]) for host in hosts]
    seconds = SECONDS if happy else BARE_SECONDS
    careful = () if happy else ("-c",)  # bare, a child now and then finds libc's resolver locked
    run = network.run(victim("storm", *careful, *STYLES[style], seconds, THREADS, SEED, 7, *names), happy=happy, trace=hardening.TRACE,
                      seconds=seconds + 40, must_end=True)
    over.set()
    changer.join()
    wrong = {key: hardening.said(run, key) for key in
             ("wrong_peer", "wrong_token", "no_token", "disturbed", "child_failed", "fds_more", "threads_more")}
    passed = run.status == 0 and set(wrong.values()) == {"0"}
    shown = f"{hardening.said(run, 'at_numbers')}; {wrong}"
    hardening.tell(f"storm, {style}, {seconds} s", *(("", shown) if happy else (shown, "")), passed)
    check(passed, f"status {run.status}, seed {SEED}: {shown}; {run.output.strip()[-600:]}")
    check_equal(hardening.said(run, "enough"), "1", f"connections ({shown})")


for name, happy in (("bare", False), ("happy", True)):
    for style in STYLES:
        suffix = "" if style == "blocking" else f"_{style}"
        REGISTRY[f"storm_of_threads_{name}{suffix}"] = Case(storm, (), (happy, style), seconds=SECONDS + 100, load=HEAVY)
