"""Cases of kind B of the collection: DNS oddities. What differs in fields alone is in test_parity.py."""

import pathlib

import lab
import topology
from cases import REGISTRY, Case, case, check, check_between, check_connected, check_equal, report, victim

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


@case()
def case_28_answered_by_a_module(network):
    """A name that a module before dns has is not asked of the DNS, and comes as soon as bare, IPv4 alone at once."""
    pathlib.Path("/etc/nsswitch.conf").write_text("hosts: files lab [NOTFOUND=return] dns\n", encoding="ascii")
    library = {"LD_LIBRARY_PATH": str(lab.ROOT / "build/tests")}
    for name, family, within_ms in (("quick.local", UNSPEC, 400), ("quick.local", "2h", 400), ("slow.local", INET, 400),
                                    ("slow.local", UNSPEC, None), ("absent.local", UNSPEC, 400)):
        bare, seen = (_look_up(network, family, name, happy=happy, environment=library) for happy in (False, True))
        check_equal((seen["code_1"], seen.get("addresses_1")), (bare["code_1"], bare.get("addresses_1")), name)
        check_equal(seen["code_1"] == "0", name != "absent.local", f"{name} was found")
        check_between(float(seen["ms_1"]), 0, within_ms or float(bare["ms_1"]) + 400, f"ms of {name}")
    network.sync()
    check_equal(network.find("query"), [], "queries")


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


@case()
def case_32_link_local(network):
    """A link-local destination keeps its scope; a name of /etc/hosts that has one is what libc makes of it."""
    where = "fe80::99%c0"
    topology.call("ip", "-n", "r", "addr", "add", "fe80::99/64", "dev", "r0", "nodad")
    network.start_daemon("r", lab.PYTHON, "-IS", lab.HERE / "tcp_server.py", "r")
    network.wait_ready()
    with open("/etc/hosts", "a", encoding="ascii") as hosts:
        hosts.write(f"{where} linked.test\n")
    for port, status, ending in ((7, 0, f"{where} connected\npeer {where}\n"), (81, 1, f"{where} ECONNREFUSED\n")):
        run = network.run(victim("walk", where, port), happy=True)
        check_equal((run.status, run.output), (status, ending), f"port {port}")
    bare, happy = (network.run(victim("walk", "linked.test", 7), happy=happy) for happy in (False, True))
    check_equal((happy.status, happy.output), (bare.status, bare.output), "a name of /etc/hosts")
    for port, status in ((80, 0), (81, 7)):  # 7: curl could not connect
        run = network.run(["curl", "-sg", "-o", "/dev/null", f"http://[fe80::99%25c0]:{port}/"], happy=True)
        check_equal(run.status, status, f"exit status of curl at port {port}")
    check_equal(network.run(["nc", "-z", where, "80"], happy=True).status, 0, "exit status of nc")


LISTENER = """
import socket, sys
s = socket.create_server((sys.argv[1], 8080), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print('{"event": "ready"}', flush=True)
while True: s.accept()[0].close()
"""
LOCAL_CLIENTS = {
    "python": ["/usr/bin/python3", "-IS", "-c", "import socket; socket.create_connection(('localhost', 8080))"],
    "nc": ["nc", "-z", "localhost", "8080"],
    "ruby": ["ruby", "-rsocket", "-e", "TCPSocket.new('localhost', 8080)"],
    "perl": ["perl", "-MIO::Socket::IP", "-e", "IO::Socket::IP->new(PeerHost => 'localhost', PeerPort => 8080) or exit 1"],
}


def localhost_on_one(network, address):
    """C34: a refusal by one loopback address goes on to the other at once; by both, it fails at once."""
    if address is not None:
        network.start_daemon("c", lab.PYTHON, "-IS", "-c", LISTENER, address)
        network.wait_ready()
    for name, command in LOCAL_CLIENTS.items():
        bare, happy = (network.run(command, happy=happy) for happy in (False, True))
        check_equal(happy.status, bare.status, f"exit status of {name} ({happy.output!r}, bare {bare.output!r})")
        check_equal(happy.status == 0, address is not None, f"{name} connects")
        check_between(happy.seconds(), 0, bare.seconds() + 0.5, f"seconds of {name}")
    network.sync()
    check_equal(network.find("query"), [], "queries")


for label, loopback in (("ipv4", "127.0.0.1"), ("ipv6", "::1"), ("none", None)):
    REGISTRY[f"case_34_localhost_on_one.{label}"] = Case(localhost_on_one, (), (loopback,))


@case("v4-none", "v6-none")
def case_33_loopback_alone(network):
    """AI_ADDRCONFIG on a host that has nothing but the loopback: all resolves as bare, and nothing is waited for."""
    pathlib.Path("/etc/resolv.conf").write_text("", encoding="ascii")
    program = ("import socket, time\n"
               "for name in ('localhost', '127.0.0.1', '::1'):\n"
               "    for family in (0, 2, 10):\n"
               "        try: print(name, family, socket.getaddrinfo(name, 80, family, 1, 0, socket.AI_ADDRCONFIG))\n"
               "        except socket.gaierror as error: print(name, family, error)\n")
    bare, happy = (network.run(["/usr/bin/python3", "-IS", "-c", program], happy=happy) for happy in (False, True))
    check_equal(happy.output, bare.output, "answers")
    check_between(happy.seconds(), 0, bare.seconds() + 0.5, "seconds")
    network.start_daemon("c", lab.PYTHON, "-IS", "-c", LISTENER, "127.0.0.1")
    network.wait_ready()
    run = network.run(["nc", "-z", "localhost", "8080"], happy=True)
    check_equal(run.status, 0, "exit status of nc")
    check_between(run.seconds(), 0, 0.8, "seconds of nc")
