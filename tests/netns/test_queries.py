"""What libc's resolver is asked directly: res_query() and its kin, getnameinfo(), gethostbyaddr()."""

import pathlib

import topology
from cases import case, check, check_between, check_equal, victim

LIVE, LIVE6 = topology.NAMESERVERS
DEAD = topology.DEAD_NAMESERVER
A, PTR, MX, TXT, AAAA, SRV, ANY = 1, 12, 15, 16, 28, 33, 255
FUNCTIONS = ("query", "search", "nquery", "nsearch")


def _write(*nameservers, more=""):
    text = "".join(f"nameserver {address}\n" for address in nameservers) + more
    pathlib.Path("/etc/resolv.conf").write_text(text, encoding="ascii")


def _reverse(address):
    return ".".join(reversed(address.split("."))) + ".in-addr.arpa"


def _answers(run, questions):
    """What was said to each, in order, and after how many ms."""
    lines = run.output.splitlines()
    said = [line for line in lines if not line.startswith("ms_")]
    times = [float(line.split()[1]) for line in lines if line.startswith("ms_")]
    check_equal(len(said), len(questions), "answers")
    return said, times


def _ask(network, *questions, happy):
    return _answers(network.run(victim("queries", *questions), happy=happy, seconds=30), questions)


def _ask_both(network, *questions):
    """The same bare and with libhappy, at the same time."""
    runs = [network.start(victim("queries", *questions), happy=happy) for happy in (False, True)]
    return [_answers(run.wait(50), questions) for run in runs]


def _zone(network):
    """A name of each kind; the names."""
    host = network.host("asked")
    network.set_record(host.name, "TXT", records=["said"])
    network.set_record(_reverse(host.ipv4[0]), "PTR", records=[host.name + "."])
    for name, action in (("fails.test", "servfail"), ("refuses.test", "refused"), ("cut.test", "truncate"), ("empty.test", "nodata"),
                         ("odd.test", "notimp")):
        network.set_record(name, "A", records=["192.0.2.77"] * 1, action=action)
    network.set_record("many.test", "A", records=[f"192.0.2.{number}" for number in range(1, 61)])
    network.set_record("alias.test", "CNAME", records=[host.name + "."])
    network.set_record("in.search.test", "A", records=["192.0.2.78"])
    return host


def _questions(host):
    names = (host.name, host.name + ".", "alias.test", "absent.test", "absent.test.", "fails.test", "refuses.test", "cut.test", "empty.test",
             "odd.test", "in", "in.", "in.search", "odd..test", "x" * 64 + ".test", "many.test",
             "a\\.b.test", "a\\999.test", "a\\")
    asked = [f"{function}:{name}:{A}" for function in FUNCTIONS for name in names]
    asked += [f"{function}:{host.name}:{kind}" for function in FUNCTIONS for kind in (TXT, AAAA, MX, SRV, ANY, 0, 252, 65536)]
    asked += [f"{function}:many.test:{A}:{room}" for function in FUNCTIONS for room in (0, 11, 12, 40, 512, 1000)]
    asked += [f"name:{host.ipv4[0]}", f"host:{host.ipv4[0]}", "name:192.0.2.200", "host:192.0.2.200"]
    return asked


@case()
def queries_overtake(network):
    """The first of two nameservers silent: 0.3 s for the first question of a process, no wait for the next, of any kind."""
    host = _zone(network)
    network.set_record("_ldap._tcp." + host.name, "SRV", records=[f"0 0 389 {host.name}."])
    _write(DEAD, LIVE, more="search search.test\n")
    asked = [f"{function}:_ldap._tcp.{host.name}:{SRV}" for function in FUNCTIONS]
    asked += ["search:in:1", "nsearch:absent.test:1", f"name:{host.ipv4[0]}", f"host:{host.ipv4[0]}", "init", "query:many.test:1"]
    said, times = _ask(network, *asked, happy=True)
    _write(LIVE, more="search search.test\n")
    bare, _ = _ask(network, *asked, happy=False)
    check_equal(said, bare, "answers")
    check_between(times[0], 290, 1000, "ms of the first question")
    check_between(max(times[1:]), 0, 290, "ms of the others")


@case(seconds=60)
def queries_all_dead(network):
    """As bare, and not later."""
    _write(DEAD, "198.51.100.252", more="options timeout:1 attempts:1\nsearch test\n")
    asked = ("query:there.test:1", "nsearch:there.test:33", "name:192.0.2.1")
    (bare, before), (said, times) = _ask_both(network, *asked)
    check_equal(said, bare, "answers")
    check(all(ms < other + 300 for ms, other in zip(times, before)), f"{times} ms, bare {before}")


SETTINGS = (((LIVE,), ""), ((LIVE, LIVE6), ""), ((LIVE, LIVE6), "search test search.test\n"),
            ((LIVE6, LIVE), "options edns0 trust-ad ndots:2\nsearch test\n"))


@case(seconds=60)
def queries_are_libcs(network):
    """Every byte of a reply, errno, h_errno, with one nameserver and with two."""
    host = _zone(network)
    asked = _questions(host)
    for nameservers, more in SETTINGS:
        _write(*nameservers, more=more)
        (bare, _), (seen, _) = _ask_both(network, *asked)
        different = [f"{question}: {one} / {other}" for question, one, other in zip(asked, bare, seen) if one != other]
        check(not different, f"{len(different)} of {len(asked)} differ with {nameservers} {more!r}: " + "; ".join(different[:8]))


@case()
def queries_left_by_jump(network):
    """A program that jumps out of res_query() loses no descriptor by it."""
    host = network.host("left")
    _write(LIVE, LIVE6)
    run = network.run(victim("jumps_out", host.name), happy=True, trace=False)
    check_equal((run.status, run.output), (0, "left 0\n"), "status and output")
