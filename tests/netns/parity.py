"""What the parity cases ask: names of every kind, in every way, under system files of every kind.

Everything is a table; test_parity.py asks each question bare and with libhappy and compares the answers.
"""

import dataclasses
import itertools
import socket
import zlib
from typing import Callable

import topology

NS4, NS6 = topology.NAMESERVERS
AI_PASSIVE, AI_CANONNAME, AI_NUMERICHOST, AI_V4MAPPED, AI_ALL, AI_ADDRCONFIG = 1, 2, 4, 8, 0x10, 0x20
AI_IDN, AI_CANONIDN, AI_NUMERICSERV = 0x40, 0x80, 0x400
TCP, UDP = socket.IPPROTO_TCP, socket.IPPROTO_UDP
STREAM, DGRAM, RAW = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW
INET, INET6, UNSPEC = socket.AF_INET, socket.AF_INET6, socket.AF_UNSPEC

LABEL63 = "l" * 63
LONG253 = ".".join([LABEL63] * 3 + ["m" * 56, "test"])


def _records(**types):
    return {name.upper(): {"records": list(records)} for name, records in types.items()}


def _failing(**types):
    """Types with an action, or with records if those are given as a list."""
    return {name.upper(): ({"action": rule} if isinstance(rule, str) else {"records": rule})
            for name, rule in types.items()}


_A, _AAAA = ["198.51.100.7"], ["2001:db8:2::7"]

# In the DNS; a name that is not here is NXDOMAIN.
ZONE = {
    "both.test": _records(a=_A, aaaa=_AAAA),
    "two.test": _records(a=["198.51.100.8", "192.0.2.80"], aaaa=["2001:db8:2::8", "2001:db8:1::8"]),
    "four.test": _records(a=_A),
    "six.test": _records(aaaa=_AAAA),
    "empty.test": _records(a=[]),
    "text.test": _records(txt=["hello"]),
    "many.test": _records(a=[f"198.51.100.{n}" for n in range(1, 21)], aaaa=[f"2001:db8:2::{n}" for n in range(1, 13)]),
    "crowd.test": _records(a=[f"10.1.0.{n}" for n in range(1, 61)], aaaa=_AAAA),
    "twice.test": _records(a=_A * 2, aaaa=_AAAA * 2),
    "scopes.test": _records(
        a=["127.0.0.1", "10.0.0.1", "169.254.1.1", "198.51.100.9", "192.0.2.2", "192.0.2.1", "224.0.0.1", "0.0.0.0"],
        aaaa=["::1", "fe80::1", "fd00::1", "2002:c633:6409::1", "2001::1", "2001:db8:2::9", "2001:db8:1::2", "fec0::1",
              "ff02::1", "::198.51.100.9", "64:ff9b::c633:6409"]),
    # No mapped address beside others: glibc has it before or after IPv4 ones, by which answer came first.
    "own.test": _records(a=[topology.OWN_V4], aaaa=[topology.OWN_V6]),
    "mapped.test": _records(aaaa=["::ffff:198.51.100.7"]),
    "loop4.test": _records(a=["127.0.0.1"]),
    "my_host.test": _records(a=_A, aaaa=_AAAA),
    "xn--bcher-kva.test": _records(a=_A, aaaa=_AAAA),
    "1.test": _records(a=_A, aaaa=_AAAA),
    "a-.test": _records(a=_A, aaaa=_AAAA),
    "alias.test": _records(cname=["both.test"]),
    "chain.test": _records(cname=["chain1.test"]),
    "chain1.test": _records(cname=["chain2.test"]),
    "chain2.test": _records(cname=["two.test"]),
    "dangling.test": _records(cname=["absent.test"]),
    "hollow.test": _records(cname=["empty.test"]),
    "circle.test": _records(cname=["circle2.test"]),
    "circle2.test": _records(cname=["circle.test"]),
    "odd-alias.test": _records(cname=["-odd.test"]),
    "-odd.test": _records(a=_A, aaaa=_AAAA),
    "alias4.test": _records(cname=["four.test"]),
    "truncated.test": _failing(a="truncate", aaaa="truncate"),
    "servfail.test": _failing(a="servfail", aaaa="servfail"),
    "refused.test": _failing(a="refused", aaaa="refused"),
    "notimp.test": _failing(a="notimp", aaaa="notimp"),
    "formerr.test": _failing(a="formerr", aaaa="formerr"),
    "servfail6.test": _failing(a=_A, aaaa="servfail"),
    "servfail4.test": _failing(a="servfail", aaaa=_AAAA),
    "refused6.test": _failing(a=_A, aaaa="refused"),
    "notimp6.test": _failing(a=_A, aaaa="notimp"),
    "formerr6.test": _failing(a=_A, aaaa="formerr"),
    "nxdomain6.test": _failing(a=_A, aaaa="nxdomain"),
    "nxdomain4.test": _failing(a="nxdomain", aaaa=_AAAA),
    "nodata-servfail.test": _failing(a="nodata", aaaa="servfail"),
    "servfail-nodata.test": _failing(a="servfail", aaaa="nodata"),
    "nxdomain-nodata.test": _failing(a="nxdomain", aaaa="nodata"),
    "nodata-nxdomain.test": _failing(a="nodata", aaaa="nxdomain"),
    "nxdomain-servfail.test": _failing(a="nxdomain", aaaa="servfail"),
    "servfail-nxdomain.test": _failing(a="servfail", aaaa="nxdomain"),
    # Below search domains.
    "host.corp.test": _records(a=["198.51.100.11"], aaaa=["2001:db8:2::11"]),
    "host4.corp.test": _records(a=["198.51.100.12"]),
    "host4.other.test": _records(aaaa=["2001:db8:2::12"]),
    "second.other.test": _records(a=["198.51.100.13"], aaaa=["2001:db8:2::13"]),
    "both.test.corp.test": _records(a=["198.51.100.14"]),
    "deep.host.other.test": _records(a=["198.51.100.15"], aaaa=["2001:db8:2::15"]),
    "broken.corp.test": _failing(a="servfail", aaaa="servfail"),
    "broken.other.test": _records(a=["198.51.100.16"]),
    "hollow.corp.test": _records(a=[]),
    "dev.local": _records(a=_A),
    LONG253: _records(a=_A, aaaa=_AAAA),
    # Answers that come late: only here may libhappy's be another one (see test_parity.EARLY).
    "late6.test": {"A": {"records": _A}, "AAAA": {"records": _AAAA, "delay_ms": 300}},
    "late4.test": {"A": {"records": _A, "delay_ms": 300}, "AAAA": {"records": _AAAA}},
}


def _chains():
    """{name: whole answer}, each of A and AAAA; @ is the name, %1 and %2 are addresses."""
    number_of = {"RRSIG": "TYPE46"}
    long_chain = lambda links: [("@", "CNAME", "l1.test"), *((f"l{n}.test", "CNAME", f"l{n + 1}.test") for n in range(1, links)),
                                (f"l{links}.test", "A", "%1")]
    chains = {
        "backwards": [("t.test", "A", "%1"), ("@", "CNAME", "t.test")],
        "backwards3": [("t.test", "A", "%1"), ("b.test", "CNAME", "t.test"), ("@", "CNAME", "b.test")],
        "mixed": [("b.test", "CNAME", "t.test"), ("@", "CNAME", "b.test"), ("t.test", "A", "%1")],
        "stray": [("@", "CNAME", "t.test"), ("stray.test", "A", "%1"), ("t.test", "A", "%2")],
        "stray-last": [("@", "CNAME", "t.test"), ("t.test", "A", "%1"), ("stray.test", "A", "%2")],
        "only-stray": [("@", "CNAME", "t.test"), ("stray.test", "A", "%1")],
        "own-and-alias": [("@", "A", "%1"), ("@", "CNAME", "t.test"), ("t.test", "A", "%2")],
        "alias-and-own": [("@", "CNAME", "t.test"), ("t.test", "A", "%1"), ("@", "A", "%2")],
        "itself": [("@", "CNAME", "@"), ("@", "A", "%1")],
        "round": [("@", "CNAME", "b.test"), ("b.test", "CNAME", "@"), ("@", "A", "%1")],
        "round-off": [("@", "CNAME", "b.test"), ("b.test", "CNAME", "c.test"), ("c.test", "CNAME", "b.test"), ("b.test", "A", "%1")],
        "twice-alias": [("@", "CNAME", "t.test"), ("@", "CNAME", "t.test"), ("t.test", "A", "%1")],
        "two-targets": [("@", "CNAME", "b.test"), ("@", "CNAME", "t.test"), ("t.test", "A", "%1"), ("b.test", "A", "%2")],
        "between": [("@", "CNAME", "t.test"), ("t.test", "A", "%1"), ("t.test", "CNAME", "u.test"), ("u.test", "A", "%2")],
        "after": [("@", "A", "%1"), ("@", "CNAME", "t.test")],
        "after2": [("@", "CNAME", "t.test"), ("t.test", "A", "%1"), ("x.test", "CNAME", "y.test")],
        "chain12": long_chain(12), "chain16": long_chain(16), "chain17": long_chain(17), "chain48": long_chain(48),
        "dname": [("test", "DNAME", "x.test"), ("@", "CNAME", "dname.x.test"), ("dname.x.test", "A", "%1")],
        "signed": [("@", "CNAME", "t.test"), ("@", "RRSIG", "00" * 24), ("t.test", "A", "%1"), ("t.test", "RRSIG", "00" * 24)],
        "nowhere": [("@", "CNAME", "t.test")],
        "upper": [("@", "CNAME", "T.TEST"), ("t.test", "A", "%1")],
        "upper-owner": [("UPPER-OWNER.Test", "CNAME", "t.test"), ("T.test", "A", "%1")],
        "upper-itself": [("UPPER-Itself.test", "A", "%1"), ("upper-ITSELF.test", "A", "%2")],
        "dotted": [("@", "CNAME", "a\\.b.test"), ("a\\.b.test", "A", "%1")],
        "spaced": [("@", "CNAME", "a\\032b.test"), ("a\\032b.test", "A", "%1")],
        "dollar": [("@", "CNAME", "a$b.test"), ("a$b.test", "A", "%1")],
        "at": [("@", "CNAME", "a\\064b.test"), ("a\\064b.test", "A", "%1")],
        "slashed": [("@", "CNAME", "a\\\\b.test"), ("a\\\\b.test", "A", "%1")],
        "eight-bits": [("@", "CNAME", "b\\252cher.test"), ("b\\252cher.test", "A", "%1")],
        "zero-byte": [("@", "CNAME", "a\\000b.test"), ("a\\000b.test", "A", "%1")],
        "star": [("@", "CNAME", "*.test"), ("*.test", "A", "%1")],
        "dashed": [("@", "CNAME", "-t.test"), ("-t.test", "A", "%1")],
        "underlined": [("@", "CNAME", "_t._x.test"), ("_t._x.test", "A", "%1")],
        "odd-between": [("@", "CNAME", "a$b.test"), ("a$b.test", "CNAME", "t.test"), ("t.test", "A", "%1")],
        "odd-owner": [("a$b.test", "CNAME", "t.test"), ("t.test", "A", "%1")],
        "rooted": [("@", "CNAME", "."), (".", "A", "%1")],
        "widest": [("@", "CNAME", LONG253), (LONG253, "A", "%1")],
        "label63": [("@", "CNAME", LABEL63), (LABEL63, "A", "%1")],
        "same-twice": [("@", "CNAME", "t.test"), ("t.test", "A", "%1"), ("t.test", "A", "%1")],
        "other-type": [("@", "TXT", "text"), ("@", "A", "%1")],
    }
    zone = {}
    for label, chain in chains.items():
        zone[f"{label}.test"] = {kind: {"answers": [
            (owner.replace("@", f"{label}.test"), kind if record_type == "A" else number_of.get(record_type, record_type),
             addresses.get(text, text.replace("@", f"{label}.test")))
            for owner, record_type, text in chain]}
            for kind, addresses in (("A", {"%1": "198.51.100.61", "%2": "198.51.100.62"}),
                                    ("AAAA", {"%1": "2001:db8:2::61", "%2": "2001:db8:2::62"}))}
    return zone


_CHAINS = _chains()

FAILING_NAMES = [name for name, types in ZONE.items() if any("action" in rule for rule in types.values())]

# What one candidate of a search has, by a letter: a name like "nd4" has the first in corp.test, the second in other.test
# and the third by itself.
_FOUND = {
    "n": {},  # NXDOMAIN
    "d": _records(a=[], aaaa=[]),
    "b": _records(a=["198.51.100.{}"], aaaa=["2001:db8:2::{}"]),
    "4": _records(a=["198.51.100.{}"], aaaa=[]),
    "6": _records(a=[], aaaa=["2001:db8:2::{}"]),
    "s": _failing(a="servfail", aaaa="servfail"),
    "r": _failing(a="refused", aaaa="refused"),
    "f": _failing(a="formerr", aaaa="formerr"),
    "h": _records(cname=["empty.test"]),
    "m": _failing(a="nodata", aaaa="servfail"),
}


def _sample(pairs_of, length):
    """Names of `length` letters in which every two neighbours occur, and as many again."""
    letters = "".join(pairs_of)
    names = {a + b + letters[(place * 7 + other) % len(letters)]
             for place, a in enumerate(letters) for other, b in enumerate(letters)}
    names |= {letters[(place * 3 + other) % len(letters)] + a + b
              for place, a in enumerate(letters) for other, b in enumerate(letters)}
    return sorted(name[:length] for name in names)


TRIPLES = _sample(_FOUND, 3)
DOTTED_TRIPLES = [f"{name}.x.test" for name in TRIPLES]


def _candidates():
    zone = {"empty.test": ZONE["empty.test"]}
    for name in TRIPLES + DOTTED_TRIPLES:
        for host, (letter, place) in enumerate(zip(name[:3], (f"{name}.corp.test", f"{name}.other.test", name)), 31):
            if _FOUND[letter]:
                zone[place] = {kind: {key: [text.format(host) for text in value] if key == "records" else value
                                      for key, value in rule.items()} for kind, rule in _FOUND[letter].items()}
    return zone


_CANDIDATES = _candidates()

PLAIN_NAMES = ["both.test", "two.test", "four.test", "six.test", "empty.test", "text.test", "absent.test", "many.test",
               "scopes.test", "own.test", "mapped.test", "alias.test", "chain.test", "dangling.test", "alias4.test"]
ODD_NAMES = ["my_host.test", "xn--bcher-kva.test", "b%c3%bccher.test", "b%fccher.test", "1.test", "a-.test", "-odd.test",
             "odd-alias.test", "hollow.test", "circle.test", "crowd.test", "twice.test", "loop4.test", "BOTH.Test",
             "both.test.", "both.test..", "absent.test.", "a..test", ".test", "", ".", "%20", "both.test%20",
             "sp%20ace.test", "b\\.oth.test", "both.test%0a", "two%00.test", LABEL63 + ".test", LABEL63 + "x.test", LONG253,
             LONG253 + ".", "x" + LONG253, "y" * 1000, "*.test", "a%2fb.test", "under_score", "late6.test", "late4.test"]
NUMERIC_NAMES = ["127.1", "0x7f.1", "010.1", "1", "1.2.3.4", "1.2.3.4.", "1.2.3.4.5", "256.1.1.1", "1.2.3.4%20",
                 "0xffffffff", "::1", "::1%lo", "fe80::1%c0", "fe80::1%nosuch", "fe80::1%1", "2001:db8::1%c0",
                 "::ffff:198.51.100.10", "::", "[::1]", "1::2::3", "0.0.0.0"]
LOCAL_NAMES = ["localhost", "LOCALHOST", "localhost.", "x.localhost", "localhost.localdomain", "ip6-localhost",
               "_gateway", "_outbound", "%HOSTNAME%", "dev.local"]
IDN_NAMES = ["b%c3%bccher.test", "B%c3%9cCHER.test", "b%fccher.test", "xn--bcher-kva.test", "xn--nonsense-.test",
             "stra%c3%9fe.test", "both.test", "BOTH.test", "my_host.test", "a--b.test", "%e2%98%83.test",
             "b%c3%bcc\\her.test", "%c3%bc" * 60 + ".test", "b%cc%88cher.test", "%ef%bc%8etest", "absent.test"]
SEARCHED_NAMES = ["host", "host4", "second", "deep.host", "broken", "hollow", "absent", "both.test", "host.", "host.corp",
                  "host.corp.test", "a.b.c", "four.test", "-host", "empty.test", "absent.test"]
HOSTS_NAMES = ["filed.test", "filed4.test", "filed6.test", "filed", "alias1.test", "alias2.test", "many.filed.test",
               "FILED.test", "filed.test.", "both.test", "bad.filed.test", "mapped.filed.test", "loop.filed.test",
               "scoped.test", "four.test", "empty.test"]

HOSTS = """127.0.0.1 localhost
::1 localhost ip6-localhost
127.0.1.1 {hostname}
198.51.100.20 filed.test filed alias1.test
2001:db8:2::20 filed.test alias2.test
198.51.100.21 filed4.test
2001:db8:2::22 filed6.test
198.51.100.23 many.filed.test
198.51.100.24 many.filed.test second-name
2001:db8:2::23 many.filed.test
2001:db8:2::24 other.filed.test many.filed.test # a comment
300.1.1.1 bad.filed.test
::ffff:198.51.100.25 mapped.filed.test
127.0.0.1 loop.filed.test
fe80::1%c0 scoped.test
198.51.100.26 both.test
"""


@dataclasses.dataclass
class Setting:
    """System files; `names` are asked under them, in `ways` of all ways."""

    name: str
    names: list
    resolv: str = f"nameserver {NS4}\n"
    hosts: str = topology._FILES["/etc/hosts"]
    hosts_line: str = "files dns"
    gai: str = ""
    ways: int = 8
    environment: dict = dataclasses.field(default_factory=dict)
    zone: dict = dataclasses.field(default_factory=lambda: ZONE)
    faults: tuple = ()
    all_ways: Callable = lambda: ways()


_NS = f"nameserver {NS4}\n"
_SHORT = ["both.test", "four.test", "six.test", "empty.test", "absent.test", "alias.test", "servfail.test",
          "servfail6.test", "truncated.test", "many.test"]
_FEW = ["both.test", "absent.test", "filed.test", "filed4.test", "empty.test", "localhost", "servfail6.test", "dev.local"]

def _searching(name, names, **more):
    return Setting(name, names, zone=_CANDIDATES, **more)



def _one_family(fault, names, resolv, label=""):
    # Without what libhappy does otherwise on such a host: addresses of a family of no use are not asked for, IPv4 is
    # bridged and translated.
    plain = {"v4-none": {"HAPPY_PREF64": "none", "HAPPY_BRIDGE": "never"}, "v6-none": {"HAPPY_PARTIAL": "0"}}
    return Setting(f"{fault}{label}", names, resolv=resolv, ways=12, faults=(fault,), environment=plain[fault],
                   all_ways=lambda: [["getaddrinfo", None, "80", "null", "0", "0", "0"], *mapped_ways(), *ways()[::5]])


SETTINGS = [
    Setting("plain", PLAIN_NAMES, ways=40),
    Setting("failing", FAILING_NAMES, ways=8),
    Setting("odd-names", ODD_NAMES, ways=10),
    Setting("numeric", NUMERIC_NAMES + [None], ways=14),
    Setting("local", LOCAL_NAMES, ways=8),
    Setting("ipv6-nameserver", _SHORT, resolv=f"nameserver {NS6}\n", ways=4),
    Setting("two-nameservers", _SHORT, resolv=f"nameserver {NS4}\nnameserver {NS6}\n", ways=5),
    Setting("rotate", _SHORT, resolv=f"nameserver {NS4}\nnameserver {NS6}\noptions rotate\n", ways=4),
    Setting("edns0", _SHORT, resolv=_NS + "options edns0 trust-ad\n", ways=4),
    Setting("single-request", _SHORT, resolv=_NS + "options single-request\n", ways=4),
    Setting("single-request-reopen", [*_SHORT, "servfail4.test", "refused6.test"], resolv=_NS + "options single-request-reopen\n", ways=3),
    Setting("use-vc", _SHORT, resolv=_NS + "options use-vc\n", ways=4),
    Setting("no-aaaa", _SHORT, resolv=_NS + "options no-aaaa\n", ways=4),
    Setting("no-tld-query", SEARCHED_NAMES, resolv=_NS + "search corp.test\noptions no-tld-query\n", ways=3),
    Setting("old-options", _SHORT, resolv=_NS + "options debug inet6 ip6-dotint no-check-names unknown\n", ways=2),
    Setting("sortlist", ["two.test", "many.test"], resolv=_NS + "sortlist 192.0.2.0/255.255.255.0\n", ways=6),
    Setting("search", SEARCHED_NAMES, resolv=_NS + "search corp.test\n", ways=8),
    Setting("search-two", SEARCHED_NAMES, resolv=_NS + "search corp.test other.test\n", ways=8),
    Setting("search-ndots-0", SEARCHED_NAMES, resolv=_NS + "search corp.test other.test\noptions ndots:0\n", ways=3),
    Setting("search-ndots-2", SEARCHED_NAMES, resolv=_NS + "search other.test corp.test\noptions ndots:2\n", ways=6),
    Setting("search-ndots-15", SEARCHED_NAMES, resolv=_NS + "search corp.test other.test\noptions ndots:99\n", ways=2),
    Setting("search-root", SEARCHED_NAMES, resolv=_NS + "search .\n", ways=3),
    Setting("search-root-too", SEARCHED_NAMES, resolv=_NS + "search . corp.test\noptions ndots:2\n", ways=3),
    Setting("domain", SEARCHED_NAMES, resolv=_NS + "domain corp.test\n", ways=2),
    Setting("localdomain", SEARCHED_NAMES, resolv=_NS + "search other.test\n", ways=2,
            environment={"LOCALDOMAIN": "corp.test", "RES_OPTIONS": "ndots:2"}),
    *(_searching(f"candidates-{ndots}", TRIPLES + DOTTED_TRIPLES, ways=2,
              resolv=_NS + f"search corp.test other.test\noptions ndots:{ndots} timeout:1 attempts:1\n")
      for ndots in range(1, 6)),
    _searching("candidates-root", TRIPLES, ways=2, resolv=_NS + "search corp.test . other.test\n"),
    _searching("candidates-no-tld", TRIPLES, ways=2,
            resolv=_NS + "search corp.test other.test\noptions no-tld-query timeout:1\n"),
    _searching("candidates-many", TRIPLES, ways=1,
            resolv=_NS + "search a.test b.test c.test d.test e.test f.test corp.test other.test\n"),
    _searching("candidates-two-nameservers", TRIPLES, ways=1,
            resolv=f"nameserver {NS4}\nnameserver {NS6}\nsearch corp.test other.test\n"),
    _searching("candidates-use-vc", TRIPLES, ways=1, resolv=_NS + "search corp.test other.test\noptions use-vc\n"),
    _searching("candidates-no-aaaa", TRIPLES, ways=1, resolv=_NS + "search corp.test other.test\noptions no-aaaa\n"),
    Setting("hosts", HOSTS_NAMES, hosts=HOSTS, ways=16),
    Setting("hosts-multi", HOSTS_NAMES, hosts="multi on\n" + HOSTS, ways=2),
    Setting("hosts-search", HOSTS_NAMES + ["host"], hosts=HOSTS, resolv=_NS + "search test corp.test\n", ways=4),
    Setting("dns-files", HOSTS_NAMES, hosts=HOSTS, hosts_line="dns files", ways=6),
    Setting("files-only", _FEW, hosts=HOSTS, hosts_line="files", ways=4),
    Setting("dns-only", _FEW, hosts=HOSTS, hosts_line="dns", ways=4),
    Setting("unknown-before", _FEW, hosts=HOSTS, hosts_line="files nosuchmodule dns", ways=3),
    Setting("unknown-after", _FEW, hosts=HOSTS, hosts_line="files dns nosuchmodule", ways=3),
    Setting("desktop", _FEW, hosts=HOSTS, hosts_line="files mdns4_minimal [NOTFOUND=return] dns myhostname mymachines",
            ways=4),
    Setting("resolved", _FEW, hosts=HOSTS, hosts_line="mymachines resolve [!UNAVAIL=return] files myhostname dns", ways=4),
    Setting("return", _FEW, hosts=HOSTS, hosts_line="files [NOTFOUND=return] dns", ways=3),
    Setting("merge", HOSTS_NAMES, hosts=HOSTS, hosts_line="files [SUCCESS=merge] dns", ways=4),
    Setting("go-on", _FEW, hosts=HOSTS, hosts_line="files [SUCCESS=continue] dns", ways=3),
    Setting("tryagain", ["servfail.test", "servfail6.test", "absent.test", "both.test"], hosts=HOSTS,
            hosts_line="dns [TRYAGAIN=return UNAVAIL=return] files", ways=4),
    Setting("broken-nsswitch", _FEW, hosts=HOSTS, hosts_line="files [NOTFOUND dns", ways=3),
    Setting("gai-ipv4-first", PLAIN_NAMES, gai="precedence ::ffff:0:0/96 100\n", ways=4),
    Setting("gai-all", PLAIN_NAMES,
            gai="label ::1/128 0\nlabel ::/0 1\nlabel 2001:db8:1::/48 9\nlabel 2002::/16 2\nlabel ::/96 3\n"
                "label ::ffff:0:0/96 4\nprecedence ::1/128 50\nprecedence ::/0 40\nprecedence 2002::/16 30\n"
                "precedence fd00::/8 45\nprecedence ::/96 20\nprecedence ::ffff:0:0/96 10\n"
                "scopev4 ::ffff:169.254.0.0/112 2\nscopev4 ::ffff:127.0.0.0/104 2\nscopev4 ::ffff:10.0.0.0/104 5\n"
                "scopev4 ::ffff:0.0.0.0/96 14\n", ways=4),
    Setting("gai-broken", PLAIN_NAMES, gai="precedence ::ffff:0:0 100\nlabel x/2 1\nreload yes\nnonsense\n", ways=2),
    Setting("gai-comments", PLAIN_NAMES, gai="# precedence ::ffff:0:0/96  100\n\n", ways=1),
    Setting("hosts-by-name", PLAIN_NAMES + FAILING_NAMES + ODD_NAMES, ways=12, all_ways=lambda: host_ways()),
    Setting("hosts-by-name-search", SEARCHED_NAMES, resolv=_NS + "search corp.test other.test\n", ways=12,
            all_ways=lambda: host_ways()),
    _searching("hosts-by-name-candidates", TRIPLES, ways=2, all_ways=lambda: host_ways(),
               resolv=_NS + "search corp.test other.test\noptions ndots:2 timeout:1 attempts:1\n"),
    Setting("chains", sorted(_CHAINS), zone=_CHAINS, ways=12),
    Setting("chains-by-name", sorted(_CHAINS), zone=_CHAINS, ways=9, all_ways=lambda: host_ways()),
    Setting("idn", IDN_NAMES, ways=9, all_ways=lambda: idn_ways()),
    Setting("mapped", PLAIN_NAMES + FAILING_NAMES, ways=12, all_ways=lambda: mapped_ways()),
    Setting("mapped-search", SEARCHED_NAMES, resolv=_NS + "search corp.test other.test\n", ways=12,
            all_ways=lambda: mapped_ways()),
    Setting("mapped-no-aaaa", _SHORT, resolv=_NS + "options no-aaaa\n", ways=6, all_ways=lambda: mapped_ways()),
    _one_family("v4-none", PLAIN_NAMES, f"nameserver {NS6}\n"),
    _one_family("v4-none", SEARCHED_NAMES, f"nameserver {NS6}\nsearch corp.test other.test\n", "-search"),
    _one_family("v6-none", PLAIN_NAMES, _NS),
    Setting("no-nameserver", ["localhost", "both.test", "filed.test"], hosts=HOSTS, resolv="", ways=2),
]


def ways():
    """All ways to ask, each a list of words with None in place of the name."""
    hints = [("null", 0, 0, 0)]
    for family, kind, flags in itertools.product(
            (UNSPEC, INET, INET6), (0, STREAM, DGRAM),
            (0, AI_ADDRCONFIG, AI_CANONNAME, AI_V4MAPPED, AI_V4MAPPED | AI_ALL, AI_ALL | AI_ADDRCONFIG,
             AI_V4MAPPED | AI_ADDRCONFIG | AI_CANONNAME, AI_PASSIVE, AI_PASSIVE | AI_V4MAPPED | AI_ADDRCONFIG)):
        hints.append((family, kind, 0, flags))
    for family, flags in itertools.product(
            (UNSPEC, INET, INET6),
            (AI_NUMERICHOST, AI_NUMERICSERV, AI_IDN, AI_IDN | AI_CANONNAME, AI_IDN | AI_CANONIDN | AI_CANONNAME, AI_CANONIDN,
             0x8000, AI_CANONNAME | AI_PASSIVE | AI_ADDRCONFIG)):
        hints.append((family, STREAM, 0, flags))
    hints += [(UNSPEC, STREAM, TCP, 0), (UNSPEC, STREAM, UDP, 0), (UNSPEC, 0, TCP, 0), (UNSPEC, 0, UDP, AI_CANONNAME),
              (UNSPEC, RAW, 0, 0), (UNSPEC, RAW, 47, 0), (UNSPEC, 0, 132, 0), (17, STREAM, 0, 0), (UNSPEC, 99, 0, 0),
              (1, 0, 0, 0), (UNSPEC, socket.SOCK_SEQPACKET, 0, 0)]
    services = ["80", "-", "http", "domain", "0", "65536", "nosuchservice", "ssh", "-1", "", "080"]
    asked = [["getaddrinfo", None, services[n % len(services)], *map(str, h[:3]), f"{h[3]:x}"]
             for n, h in enumerate(hints)]
    return asked + host_ways()


def host_ways():
    """The older functions."""
    asked = [["gethostbyname", None], ["gethostbyname2", None, str(INET)], ["gethostbyname2", None, str(INET6)],
             ["gethostbyname2", None, "1"]]
    asked += [["gethostbyname_r", None, str(size)] for size in (0, 16, 64, 100, 200, 512, 1024, 8192)]
    asked += [["gethostbyname2_r", None, str(family), str(size)] for family in (INET, INET6) for size in (40, 128, 300, 4096)]
    return asked


def idn_ways():
    """Everything that glibc asks libidn2 for."""
    return [["getaddrinfo", None, "80", str(family), str(STREAM), "0", f"{flags:x}"]
            for family in (UNSPEC, INET, INET6)
            for flags in (AI_IDN, AI_IDN | AI_CANONNAME, AI_IDN | AI_CANONIDN | AI_CANONNAME)]


def mapped_ways():
    """Those in which IPv4 addresses may be wanted as IPv6 ones."""
    return [["getaddrinfo", None, "80", str(family), str(kind), "0", f"{flags | AI_V4MAPPED:x}"]
            for family, kind, flags in itertools.product(
                (INET6, UNSPEC), (STREAM, DGRAM, 0),
                (0, AI_ALL, AI_CANONNAME, AI_ADDRCONFIG, AI_ALL | AI_ADDRCONFIG | AI_CANONNAME))]


def questions(setting):
    """The questions of one setting: each of its names in as many ways, every way for some name, the same at every run."""
    all_ways = setting.all_ways()
    asked = []
    for place, name in enumerate(setting.names):
        first = zlib.crc32(f"{setting.name} {place}".encode())
        step = 7  # coprime to their number: neighbours in the table are alike
        for n in range(setting.ways):
            way = list(all_ways[(first + n * step) % len(all_ways)])
            way[1] = "-" if name is None else name.replace("%HOSTNAME%", socket.gethostname())
            if name is None and way[0] != "getaddrinfo":
                continue
            asked.append(way)
    return asked
