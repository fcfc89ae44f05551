"""SRV records that programs look up by themselves: the target that they connect to races its neighbours, or nothing changes."""

import pathlib
import re

import hardening
import service_records
from cases import case, check, check_between, check_equal, queries, report, spacing_ms, syns_to
from lab import Host
from srv import BY_ITSELF, ECHO, GIT, HTTPS, OWNER, REFUSED, check_peer, dead, peer_of, python, set_srv
from test_servers import BOTH_FAMILIES, REPOSITORY_PORT, apt, start_repository
from topology import ADDRESSES


# spec: XMPP-2
@case()
def target_at_the_port_of_https(network):
    """A target of XMPP at port 443: its neighbours join, and what HTTPS records say of that name is not for it."""
    a, b, web = dead(network, "a", 20), network.host("b"), network.host("web")
    network.set_record(a.name, "HTTPS", records=[service_records.record(1, web.name, port=ECHO)])
    set_srv(network, (0, 9, HTTPS, a.name), (0, 1, GIT, b.name))
    run = network.run(python(BY_ITSELF, "res_query", OWNER, f"{a.name}:{HTTPS}"), happy=True)
    check_peer(run, b, GIT)
    check_equal(network.find("query", type="HTTPS"), [], "queries for HTTPS")
    check_equal(syns_to(network, web), [], "SYNs to the web server")


# spec: XMPP-2
@case()
def program_asks_itself(network):
    """A program's own SRV answer: the first target races its neighbours at their ports, not the next group."""
    a, b, c = dead(network, "a", 20), network.host("b"), network.host("c")
    set_srv(network, (0, 9, GIT, a.name), (0, 1, ECHO, b.name), (5, 0, HTTPS, c.name))
    command = python(BY_ITSELF, "res_query", OWNER, f"{a.name}:{GIT}")
    run = network.run(command, happy=True)
    check_peer(run, b, ECHO)
    check_between(run.seconds(), 0.2, 3, "seconds")
    check_equal(syns_to(network, c), [], "SYNs to the second group")
    bare = network.run(python(BY_ITSELF, "res_query", OWNER))
    check_equal(report(run)["answer"], report(bare)["answer"], "the answer that the program gets")


@case()
def every_function_is_noticed(network):
    """res_query(), res_search(), both with a state, by both of libc's names for them."""
    functions = [prefix + name for prefix in ("", "__") for name in ("res_query", "res_search", "res_nquery", "res_nsearch")]
    started = []
    for number, function in enumerate(functions):
        a, b = dead(network, f"a{number}", 20 + number), network.host(f"b{number}")
        owner = f"_xmpp-client._tcp.domain{number}.test"
        set_srv(network, (0, 9, GIT, a.name), (0, 1, ECHO, b.name), owner=owner)
        started.append((function, b, network.start(python(BY_ITSELF, function, owner, f"{a.name}:{GIT}"), happy=True)))
    for function, b, program in started:
        run = program.wait(5)
        check(peer_of(run)[0] in b.addresses(), f"{function}: {run.output!r}")


@case()
def answer_not_followed(network):
    """No race across targets without the program's answer, for another service, at another port, or if switched off."""
    a, b = dead(network, "a", 20), network.host("b")
    records = ((0, 9, GIT, a.name), (0, 1, ECHO, b.name))
    set_srv(network, *records)
    set_srv(network, *records, owner="_http._tcp.example.test")
    started = [(settings, network.start(python(BY_ITSELF, "res_query", owner, f"{a.name}:{port}"), happy=True, environment=settings))
               for owner, port, settings in (("-", GIT, {}), ("_http._tcp.example.test", GIT, {}), (OWNER, HTTPS, {}),
                                             (OWNER, GIT, {"HAPPY_SRV": "none"}))]
    for settings, program in started:
        run = program.wait(2.5)
        check_equal(run.status, None, f"ended by itself: {settings} {run.output!r}")
    check_equal(syns_to(network, b), [], "SYNs to the neighbour")


LDAP = 389
LDAP_DOMAIN = "ldap.test"
LDAPSEARCH = ["ldapsearch", "-x", "-H", "ldap:///dc%3Dldap%2Cdc%3Dtest", "-b", "dc=test", "-s", "base"]


def ldapsearch(network, state, first_kind, group_port, happy):
    """Two targets that come first, and one of the second group: (status, which got SYNs, in order), and the seconds."""
    place = 64 + 8 * (2 * (state == "silent") + happy)
    hosts = [network.host(f"{role}-{state}{int(happy)}", [ADDRESSES[kind](place + number)])
             for number, (role, kind) in enumerate((("one", first_kind), ("two", "live6"), ("spare", "live6")))]
    one, two, spare = (host.name for host in hosts)
    set_srv(network, (0, 60000, group_port, one), (0, 0, group_port, two), (5, 0, LDAP, spare), owner=f"_ldap._tcp.{LDAP_DOMAIN}")
    run = network.run(LDAPSEARCH, happy=happy, environment={"HAPPY_SRV": "ldap"} if happy else {}, seconds=10)
    roles = {host.ipv6[0]: host.name.split("-")[0] for host in hosts}
    return (run.status, [roles[address] for address, _ in syns_to(network, *hosts)]), run.seconds()


# spec: XMPP-2
@case(client_settings={"ipv4/tcp_syn_retries": 1})
def ldapsearch_by_srv(network):
    """A program that goes through the records by itself, its service being listed: a group that refuses is left as bare,
    with no SYN too many; beside a silent target its neighbour is found, and the next group is not touched."""
    for state, kind, port, wanted in (("refusing", "live6", REFUSED, (0, ["one", "two", "spare"])),
                                      ("silent", "dead6", LDAP, (0, ["one", "two"]))):
        bare, happy = (ldapsearch(network, state, kind, port, helped) for helped in (False, True))
        hardening.tell(f"ldapsearch by _ldap._tcp, first group {state}",
                       *(f"{seconds:.2f} s; SYNs to {', '.join(roles)}" for (_, roles), seconds in (bare, happy)), True)
        check_equal((happy[0], bare[0]), (wanted, wanted), f"status and SYNs with libhappy, and bare, {state}")
        check_between(happy[1], 0, 2, f"seconds, {state}")


APT_TIMEOUT_S = 2  # after which it leaves a silent target
# How the first two targets are: their address, and (priority, weight, port) of their records; a third follows with 9.
# Of two equal ones apt-get takes either.
APT_STATES = {
    "healthy": ("live6", (0, 1, REPOSITORY_PORT), (1, 1, REPOSITORY_PORT)),
    "refusing": ("live6", (0, 1, REFUSED), (1, 1, REFUSED)),
    "silent": ("dead6", (0, 1, REPOSITORY_PORT), (0, 1, REPOSITORY_PORT)),
}


def start_apt(network, folder, state, happy):
    """apt-get, the domain of its source, and the targets of the domain's _http._tcp; these by IPv6 alone, so that one
    target has one SYN."""
    kind, *records = APT_STATES[state]
    who = f"{state}-{'happy' if happy else 'bare'}"
    number = 64 + 8 * (list(APT_STATES).index(state) * 2 + happy)
    domain = network.host(who)
    hosts = [network.host(f"{role}-{who}", [ADDRESSES[kind if place < 2 else "live6"](number + place)])
             for place, role in enumerate(("one", "two", "last"))]
    set_srv(network, *((*record, host.name) for record, host in zip((*records, (9, 1, REPOSITORY_PORT)), hosts)),
            owner=f"_http._tcp.{domain.name}")
    program = network.start(apt(folder / who, f"http://{domain.name}", f"Acquire::http::Timeout={APT_TIMEOUT_S}"), happy=happy)
    return domain, hosts, program


def seen_of_apt(network, domain, hosts, run):
    """The end, the queries and the SYNs, with names that are the same bare and with libhappy."""
    roles = {address: host.name.split("-")[0] for host in hosts for address in host.addresses()}
    names = [f"_http._tcp.{domain.name}", domain.name, *(host.name for host in hosts)]
    said = re.sub(r"Fetched .*|2001:db8:\S+", "", run.output.replace(domain.name, "NAME"))
    asked = {(name.split("-")[0], kind) for name, kind in queries(network, *names)}
    syns = network.syns(Host("", [*domain.ipv6, *roles], domain.ipv4))
    return {"status": run.status, "output": said, "queries": sorted(asked),
            "syns": [(roles.get(syn["address"], "domain"), syn["port"]) for syn in syns],
            "waited": [gap > 1000 * APT_TIMEOUT_S * 0.8 for gap in spacing_ms(syns)]}


@case(seconds=60)
def apt_get_by_srv(network):
    """apt-get asks for _http._tcp by itself, and http is not listed: nothing is different from bare."""
    folder = pathlib.Path("/run/lab/apt")
    start_repository(network, folder, BOTH_FAMILIES)
    started = {(state, happy): start_apt(network, folder, state, happy) for state in APT_STATES for happy in (False, True)}
    runs = {key: program.wait(25) for key, (_, _, program) in started.items()}
    for state in APT_STATES:
        bare, happy = (seen_of_apt(network, *started[state, helped][:2], runs[state, helped]) for helped in (False, True))
        if state == "silent":
            for seen in (bare, happy):
                seen["syns"] = [("one" if role == "two" else role, port) for role, port in seen["syns"]]
        hardening.tell(f"apt-get by _http._tcp, first targets {state}",
                       *(" ".join(f"{role}:{port}" for role, port in seen["syns"]) for seen in (bare, happy)), bare == happy)
        check(bare["status"] == 0 and "lab-package_1.0_all.deb" in bare["output"], f"bare, {state}: {bare}")
        check_equal({role for role, _ in bare["syns"]}, {"one"} if state == "healthy" else {"one", "two", "last"} -
                    ({"two"} if state == "silent" else set()), f"targets, bare, {state}")
        check_equal(happy, bare, f"with libhappy, {state}")
