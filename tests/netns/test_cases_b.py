"""Cases of kind B of the collection: DNS oddities. What differs in fields alone is in test_parity.py."""

import pathlib

from cases import case, check, check_between, check_connected, check_equal, report, victim

UNSPEC, INET, INET6 = 0, 2, 10


def _look_up(network, family, *names, **options):
    return report(network.run(victim("looks_up", family, *names), **{"happy": True, **options}))


@case("aaaa-silent")
def case_15_aaaa_never_answered(network):
    """The A answer is enough; libc waits 15 s."""
    host = network.host("silent")
    for program in (["wget", "-q", "-O-", f"http://{host.name}/"], ["nc", "-z", host.name, "80"]):
        run = network.run(program, happy=True)
        check_between(run.seconds(), 0, 0.9, f"seconds of {program[0]}")
    seen = _look_up(network, UNSPEC, host.name)
    check_equal((seen["code_1"], seen["addresses_1"]), ("0", host.ipv4[0]), "answer")


@case()
def case_17_18_broken_for_aaaa_alone(network):
    """Errors for AAAA alone: the good A answer is used at once, and a question for IPv6 alone fails as bare."""
    for action in ("nxdomain", "servfail", "refused", "notimp", "formerr"):
        host = network.host(action)
        network.set_record(host.name, "AAAA", action=action)
        seen = _look_up(network, UNSPEC, host.name)
        check_equal((seen["code_1"], seen["addresses_1"]), ("0", host.ipv4[0]), action)
        check_between(float(seen["ms_1"]), 0, 200, f"ms with {action}")
        bare = _look_up(network, INET6, host.name, happy=False)
        check_equal(_look_up(network, INET6, host.name)["code_1"], bare["code_1"], f"code for IPv6 alone with {action}")


@case()
def case_27_trailing_dot(network):
    """A dot at the end stops the search list; the name is asked once, as it is."""
    host = network.host("dotted")
    with open("/etc/resolv.conf", "a", encoding="ascii") as resolv_conf:
        resolv_conf.write("search corp.test\noptions ndots:3\n")
    seen = _look_up(network, UNSPEC, f"{host.name}.")
    check_equal(seen["code_1"], "0", "code")
    network.sync()
    check_equal({query["name"] for query in network.find("query")}, {host.name}, "names asked for")


@case("v6-drop")
def case_30_underscores_and_chains(network):
    """Names that validating libraries reject, and a chain of aliases, connect as any."""
    target = network.host("end_of.my-chain")
    network.set_record("first_.test", "CNAME", records=["second.test"])
    network.set_record("second.test", "CNAME", records=[target.name])
    run = network.run(victim("walk", "first_.test", 7), happy=True)
    check_connected(network, target, run, "4", 0.8)


@case()
def case_31_numbers_are_not_asked(network):
    """The forms of numeric addresses resolve as bare and reach no nameserver."""
    names = ["127.1", "0x7f.1", "010.1", "::1%lo", "fe80::1%c0", "::ffff:198.51.100.10"]
    for family in (UNSPEC, INET, INET6):
        seen, bare = (_look_up(network, family, *names, happy=happy) for happy in (True, False))
        for key in bare:
            check(key.startswith("ms_") or seen[key] == bare[key], f"{key}: {seen.get(key)}, bare {bare[key]}")
    network.sync()
    check_equal(network.find("query"), [], "queries")


@case()
def case_33_loopback_names(network):
    """localhost is answered as bare, without a query."""
    pathlib.Path("/etc/resolv.conf").write_text("", encoding="ascii")
    seen, bare = (_look_up(network, UNSPEC, "localhost", "127.0.0.1", "::1", happy=happy) for happy in (True, False))
    check_equal([seen[f"addresses_{n}"] for n in (1, 2, 3)], [bare[f"addresses_{n}"] for n in (1, 2, 3)], "addresses")
