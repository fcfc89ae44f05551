"""Nameservers that are dead, many, or reached in a particular way."""

import os
import pathlib
import time

import lab
import topology
from cases import LIGHT, case, check, check_between, check_equal, report, victim

UNSPEC, INET = 0, 2
LIVE, LIVE6 = topology.NAMESERVERS
ODD = "198.51.100.54"  # of odd_dns_server.py, where a case starts it
DEAD = [f"198.51.100.{number}" for number in (253, 252, 251, 250, 249, 248)]


def _write(nameservers, options=""):
    text = "".join(f"nameserver {address}\n" for address in nameservers) + options
    pathlib.Path("/etc/resolv.conf").write_text(text, encoding="ascii")


def _wait_for_output(running, text):
    """Returns when the program has written `text`."""
    deadline = time.monotonic() + 10
    while text not in running.output_path.read_text(encoding="utf-8"):
        check(time.monotonic() < deadline, f"no {text}")
        time.sleep(0.02)


def _look_up(network, *names, family=UNSPEC, happy=True, **options):
    run = network.run(victim("looks_up", family, *names), happy=happy, **options)
    return {key: value if key.startswith(("addresses", "name")) else float(value) for key, value in report(run).items()}


@case("ns-dead")
def nameserver_dead(network):
    """The first one silent: 0.4 s for the first lookup of a process, 0.1 s for the next."""
    names = [network.host(label).name for label in ("one", "two", "three")]
    seen = _look_up(network, *names)
    check_equal([seen[f"code_{n}"] for n in (1, 2, 3)], [0, 0, 0], "codes")
    check_between(seen["ms_1"], 290, 400, "ms of the first lookup")
    check_between(max(seen["ms_2"], seen["ms_3"]), 0, 100, "ms of the later ones")


@case("ns-dead")
def nameserver_dead_for_old_functions(network):
    """gethostbyname2() and gethostbyname2_r() are answered by the same lookups, and by what those remember."""
    for family, kind in (("2h", "A"), ("2r", "A"), ("10h", "AAAA")):
        host = network.host(f"old-{family}")
        found = host.ipv4 if kind == "A" else host.ipv6
        seen = _look_up(network, host.name, host.name, "absent.test", family=family)
        check_equal([seen[f"code_{n}"] for n in (1, 2, 3)], [0, 0, 1], "h_errno")
        check_equal([seen["addresses_1"], seen["addresses_2"], seen["name_1"]], [*found, *found, host.name], "answers")
        check_between(seen["ms_1"], 290, 1000, "ms of the first lookup")
        check_between(seen["ms_3"], 0, 250, "ms of the third, of another name")
        network.sync()
        check_equal([query["type"] for query in network.find("query", name=host.name)], [kind], "queries")


@case()
def old_functions_in_threads(network):
    """Eight threads at a time get the answers to their own questions."""
    names = [network.host(f"thread{number}").name for number in range(5)]
    for family in ("2t", "10t"):
        said = report(network.run(victim("looks_up", family, *names), happy=True, trace=False))
        check_equal(said.get("wrong"), "0", f"wrong answers in family {family}")


@case("a-silent")
def late_query_is_hidden(network):
    """A query that goes on after the program's call leaves the low numbers to the program, which may close them."""
    host = network.host("parked")
    program = ("import os, socket, sys\n"
               "socket.getaddrinfo(sys.argv[1], 80, type=socket.SOCK_STREAM)\n"
               "found = [n for n in range(64) if os.path.exists(f'/proc/self/fd/{n}')]\n"
               "print('low', [n for n in found if 2 < n < 21])\n"
               "print('high', len([n for n in found if n > 20]))\n"
               "os.closerange(3, 64)\n"
               "s = socket.create_connection((sys.argv[1], 7)); s.send(b'x'); s.recv(1)\n"
               "print('peer', s.getpeername()[0])\n")
    said = report(network.run(["/usr/bin/python3", "-IS", "-c", program, host.name], happy=True))
    check_equal((said.get("low"), said.get("peer")), ("[]", host.ipv6[0]), "low numbers in use, and the peer")
    check(int(said["high"]) > 0, "nothing goes on")


@case()
def nameserver_many(network):
    """More than glibc's three are asked, IPv6 first."""
    host = network.host("many")
    _write([*DEAD[:4], LIVE])
    seen = _look_up(network, host.name)
    check_equal(seen["code_1"], 0, "code")
    check_between(seen["ms_1"], 1190, 1600, "ms past four dead ones")
    network.sync()
    before = len(network.find("query", name=host.name))
    _write([DEAD[0], LIVE, LIVE6])
    seen = _look_up(network, host.name)
    check_between(seen["ms_1"], 0, 100, "ms where an IPv6 one lives")
    network.sync()
    check_equal({query["server"] for query in network.find("query", name=host.name)[before:]}, {LIVE6}, "who was asked")


@case(seconds=60)
def nameserver_all_dead(network):
    """The same error as bare, and not later, for names that exist and others."""
    _write(DEAD[:2], "options timeout:1 attempts:2\n")
    there = network.host("there").name
    asked = [(family, name) for family in (UNSPEC, INET, "2h", "2r") for name in ("absent.test", there)]

    def ask(family, name, happy):
        return network.start(victim("looks_up", family, name), happy=happy)

    runs = [[ask(*question, happy) for happy in (False, True)] for question in asked]
    for question, pair in zip(asked, runs):
        bare, seen = (report(run.wait(30)) for run in pair)
        check_equal(seen["code_1"], bare["code_1"], f"code of {question}")
        check(float(seen["ms_1"]) < float(bare["ms_1"]) + 300, f"{question}: {seen['ms_1']} ms, bare {bare['ms_1']} ms")


@case()
def nameserver_loses_second_query(network):
    """The second of two queries lost: the complete answer within half a second."""
    for lost in ("A", "AAAA"):
        host = network.host(f"lost-{lost.lower()}")
        records = host.ipv4 if lost == "A" else host.ipv6
        network.set_record(host.name, lost, records=records, lost=1)
        seen = _look_up(network, host.name, environment={"HAPPY_PARTIAL": "0"})
        check_equal(seen["addresses_1"], ",".join(host.ipv6 + host.ipv4), f"addresses with {lost} lost")
        check_between(seen["ms_1"], 290, 500, "ms")


@case()
def nameserver_with_scope(network):
    """A link-local nameserver, as router advertisements give it."""
    host = network.host("scoped")
    topology.call("ip", "-n", "r", "addr", "add", "fe80::53/64", "dev", "r0", "nodad")
    network.start_daemon("r", lab.PYTHON, "-IS", lab.HERE / "dns_server.py", "/run/lab/zone.json", "fe80::53%r0")
    network.wait_ready()
    _write(["fe80::53%c0"])
    seen = _look_up(network, host.name)
    check_equal(seen["addresses_1"], ",".join(host.ipv6 + host.ipv4), "addresses")
    network.sync()
    check(all(query["server"].startswith("fe80::53") for query in network.find("query", name=host.name)), "who was asked")


@case(load=LIGHT)
def nameserver_limits(network):
    """resolv.conf's limits hold: no more than attempts x nameservers queries, none with OPT, two source ports."""
    name = network.host("limits").name
    for record_type in ("A", "AAAA"):
        network.set_record(name, record_type, action="drop")
    seen = _look_up(network, name, family=INET,
                    environment={"RES_OPTIONS": "rotate timeout:1 attempts:1"})
    check_equal(seen["code_1"], -3, "code")
    network.sync()
    check_equal(len(network.find("query", name=name)), 1, "queries")


@case()
def nameserver_edns_dropped(network):
    """A firewall drops queries with EDNS: they are asked again without, and soon."""
    host = network.host("edns")
    _write([LIVE], "options edns0 trust-ad\n")
    # In the query's header, behind IPv4's and UDP's 28 bytes: ARCOUNT is not 0.
    topology.call("ip", "netns", "exec", "s", "nft", "-f", "-", stdin="""table inet edns {
        chain input { type filter hook input priority 0;
            udp dport 53 @th,144,16 != 0 drop
        }
    }""")
    seen = _look_up(network, host.name, host.name)
    check_equal(seen["code_1"], 0, "code")
    check_between(seen["ms_1"], 290, 1200, "ms of the first lookup")
    check_between(seen["ms_2"], 0, 150, "ms of the next")


@case()
def nameserver_without_tcp(network):
    """Where the first one's answers are truncated and its TCP is silent the next one is asked; bare waits for minutes."""
    host = network.host("without-tcp")
    for record_type in ("A", "AAAA"):
        network.set_record(host.name, record_type, records=host.ipv4 if record_type == "A" else host.ipv6,
                           action="truncate")
    topology.call("ip", "netns", "exec", "r", "nft", "insert", "rule", "inet", "lab", "forward", "ip", "daddr", LIVE,
                  "tcp", "dport", "53", "drop")
    topology.call("ip", "-n", "s", "addr", "add", f"{ODD}/32", "dev", "lo")
    network.start_daemon("s", lab.PYTHON, "-ES", lab.HERE / "odd_dns_server.py", ODD)
    network.wait_ready()
    _write([LIVE, ODD])
    for family in (UNSPEC, "2h"):
        seen = _look_up(network, host.name, family=family)
        check_equal(seen["code_1"], 0, f"code {family}")
        check_between(seen["ms_1"], 290, 1200, "ms of the lookup")


@case()
def nameserver_of_ipv6_dead(network):
    """C22: the IPv6 one is silent, the IPv4 one is not, whichever is listed first."""
    topology.call("ip", "netns", "exec", "r", "nft", "insert", "rule", "inet", "lab", "forward", "ip6", "daddr", LIVE6,
                  "udp", "dport", "53", "drop")
    for number, listed in enumerate(((LIVE6, LIVE), (LIVE, LIVE6))):
        _write(listed)
        names = [network.host(f"{label}{number}").name for label in ("one", "two")]
        seen = _look_up(network, *names)
        check_equal((seen["code_1"], seen["code_2"]), (0, 0), "codes")
        check_between(seen["ms_1"], 290, 1200, "ms of the first lookup")
        check_between(seen["ms_2"], 0, 150, "ms of the next")


def _replace_etc():
    """Makes /etc a folder in which a file can be renamed over resolv.conf, which the lab's mount there does not allow."""
    old, new = pathlib.Path("/run/lab/old-etc"), pathlib.Path("/run/lab/new-etc")
    old.mkdir()
    new.mkdir()
    topology.call("mount", "--rbind", "/etc", old)
    for path in old.iterdir():
        if path.name != "resolv.conf":
            (new / path.name).symlink_to(path)
    topology.call("mount", "--bind", new, "/etc")


@case()
def nameserver_file_replaced(network):
    """C23: the new file takes the place of the old one by a rename, as resolvconf and NetworkManager do it."""
    host = network.host("renamed")
    _replace_etc()
    _write([DEAD[0]], "options timeout:1 attempts:1\n")
    for functions, family in (("getaddrinfo", INET), ("gethostbyname", "2h")):
        running = network.start(victim("looks_up", family, host.name, "+1500", host.name), happy=True)
        _wait_for_output(running, "code_1")
        pathlib.Path("/etc/resolv.conf.new").write_text(f"nameserver {LIVE}\n", encoding="ascii")
        os.rename("/etc/resolv.conf.new", "/etc/resolv.conf")
        seen = report(running.wait(10))
        check(seen["code_1"] != "0", f"{functions}: answered before the change")
        check_equal((seen["code_3"], seen["addresses_3"]), ("0", host.ipv4[0]), functions)
        check_between(float(seen["ms_3"]), 0, 400, "ms of the lookup after the change")
        _write([DEAD[0]], "options timeout:1 attempts:1\n")


@case(load=LIGHT)
def queries_have_ports_of_their_own(network):
    """Each query comes from another port, and none has an OPT record where resolv.conf wants none."""
    name = network.host("ports").name
    _look_up(network, name)
    network.sync()
    asked = network.find("query", name=name)
    check_equal(sorted(query["type"] for query in asked), ["A", "AAAA"], "queries")
    check_equal(len({query["source_port"] for query in asked}), 2, "source ports")
    check(not any(query["edns"] for query in asked), "a query has an OPT record")


@case()
def nameserver_file_changes(network):
    """A process that runs while resolv.conf is written anew asks the new nameserver."""
    host = network.host("changes")
    _write([DEAD[0]], "options timeout:1 attempts:1\n")
    running = network.start(victim("looks_up", INET, host.name, "+1500", host.name), happy=True)
    _wait_for_output(running, "addresses_1")
    _write([LIVE])
    seen = report(running.wait(10))
    check_equal((seen["code_1"], seen["code_3"]), ("-3", "0"), "codes")
    check_between(float(seen["ms_3"]), 0, 100, "ms of the lookup after the change")


@case()
def answers_are_remembered(network):
    """A name asked for again within its TTL is not asked of the DNS; a change of /etc/hosts makes it new."""
    host = network.host("again")
    running = network.start(victim("looks_up", UNSPEC, host.name, host.name, host.name, "+700", host.name), happy=True)
    _wait_for_output(running, "addresses_3")
    network.sync()
    check_equal(len(network.find("query", name=host.name)), 2, "queries for three lookups")
    with open("/etc/hosts", "a", encoding="ascii") as hosts:
        hosts.write("198.51.100.99 elsewhere.test\n")
    seen = report(running.wait(10))
    network.sync()
    check_equal(len(network.find("query", name=host.name)), 4, "queries after /etc/hosts has changed")
    check_equal({seen[f"addresses_{n}"] for n in (1, 2, 3, 5)}, {",".join(host.ipv6 + host.ipv4)}, "addresses")


@case()
def answers_are_forgotten(network):
    """Absence is remembered for a second, a TTL of 0 not at all, and nobody else's question is answered."""
    network.run(victim("looks_up", UNSPEC, "absent.test", "absent.test", "+1100", "absent.test"), happy=True)
    network.sync()
    check_equal(len(network.find("query", name="absent.test")), 4, "queries for a name that is not there")
    zero = network.host("zero")
    network.set_record(zero.name, "A", records=zero.ipv4, ttl=0)
    network.run(victim("looks_up", INET, zero.name, zero.name), happy=True)
    network.sync()
    check_equal(len(network.find("query", name=zero.name)), 2, "queries for a TTL of 0")
    init = network.host("init")
    network.run(victim("looks_up", INET, init.name, "!", init.name), happy=True)
    network.sync()
    check_equal(len(network.find("query", name=init.name)), 2, "queries around res_init()")


@case("aaaa-silent")
def nameserver_asked_one_by_one(network):
    """single-request-reopen: the questions have ports of their own as ever, and none waits for the other's answer."""
    _write([LIVE], "options single-request-reopen\n")
    host = network.host("reopened")
    seen = _look_up(network, host.name)
    check_equal((seen["code_1"], seen["addresses_1"]), (0, ",".join(host.ipv4)), "answer")
    check_between(seen["ms_1"], 0, 300, "ms")
    network.sync()
    asked = network.find("query", name=host.name)
    check_equal(len({query["source_port"] for query in asked}), 2, "source ports")


@case()
def environment_counts_as_it_was(network):
    """LOCALDOMAIN and RES_OPTIONS are read with resolv.conf, and again when that has changed; as bare."""
    for name in ("late.corp.test", "late.other.test"):
        network.set_record(name, "A", records=network.host("late").ipv4)
    found_of = {("late", "LOCALDOMAIN=corp.test", "late", "LOCALDOMAIN=other.test", "late"): 0,
                ("LOCALDOMAIN=corp.test", "late", "LOCALDOMAIN=absent.test", "late", "RES_OPTIONS=ndots:0", "late."): 2,
                ("late", "LOCALDOMAIN=corp.test", "+1500", "late"): 1}
    for family in (INET, "2h"):
        for names, found in found_of.items():
            _write([LIVE])
            pair = [network.start(victim("looks_up", family, *names), happy=happy) for happy in (False, True)]
            if "+1500" in names:
                for running in pair:
                    _wait_for_output(running, "code_1")
                _write([LIVE], "options timeout:2\n")
            bare, seen = ({key: value for key, value in report(running.wait(10)).items() if not key.startswith("ms")}
                          for running in pair)
            check_equal(seen, bare, f"{family}: {' '.join(names)}")
            check_equal(sum(key.startswith("code") and value == "0" for key, value in bare.items()), found, "names found")


@case()
def network_changes_between_lookups(network):
    """What is remembered of the kernel's routes is so for the length of a burst: the order follows the network."""
    host = network.host("moves")
    running = network.start(victim("looks_up", UNSPEC, host.name, host.name, "+700", host.name), happy=True)
    _wait_for_output(running, "addresses_2")
    topology.call("ip", "-n", "c", "-6", "route", "del", "default")
    seen = report(running.wait(10))
    for number in (1, 2):
        check_equal(seen[f"addresses_{number}"], ",".join(host.ipv6 + host.ipv4), "addresses before")
    check_equal(seen["addresses_4"], ",".join(host.ipv4 + host.ipv6), "addresses without a route for IPv6")


@case("aaaa-silent")
def passive_with_a_name(network):
    """AI_PASSIVE (lftp, socat): a client does not wait for a silent AAAA, who wants to bind gets what libc gives."""
    far = network.host("far")
    seen = _look_up(network, far.name, family="0p")
    check_equal((seen["code_1"], seen["addresses_1"]), (0, ",".join(far.ipv4)), "answer")
    check_between(seen["ms_1"], 0, 300, "ms")
    own = network.host("own", [topology.OWN_V6, topology.OWN_V4])
    network.set_record(own.name, "AAAA", records=own.ipv6, delay_ms=400)
    seen = _look_up(network, own.name, family="0p")
    check_equal(seen["addresses_1"], ",".join(own.ipv6 + own.ipv4), "addresses of this host")


@case(seconds=60)
def nameservers_dead_before_a_module(network):
    """The modules behind dns are asked when the nameservers have had their time, which is not given to them twice."""
    host = network.host("revived")
    library = {"LD_LIBRARY_PATH": str(lab.ROOT / "build/tests")}
    pathlib.Path("/etc/nsswitch.conf").write_text("hosts: files dns lab\n", encoding="ascii")
    for family in (UNSPEC, "2h"):
        _write(DEAD[:1], "options timeout:1 attempts:1\n")
        names = ("quick.local", "absent.local", "+1500", host.name, host.name)
        running = [network.start(victim("looks_up", family, *names), happy=happy, environment=library) for happy in (False, True)]
        for program in running:
            _wait_for_output(program, "code_2")
        _write([LIVE])
        bare, seen = (report(program.wait(20)) for program in running)
        for number in (1, 2, 4, 5):
            check_equal(*((said[f"code_{number}"], said.get(f"addresses_{number}", "")) for said in (seen, bare)), f"answer {number}")
        check_equal((seen["addresses_1"], seen["code_5"]), ("198.51.100.77", "0"), "the module's name, the DNS afterwards")
        for number in (1, 2):
            check_between(float(seen[f"ms_{number}"]), 900, float(bare[f"ms_{number}"]) + 400, f"ms of lookup {number}")
