"""Sockets of special kinds: those that cannot be raced are left exactly as they are, the others are raced."""

import hardening
from cases import REGISTRY, Case, check_equal, families, report, victim

LEFT_ALONE = ("sendto", "sendmsg", "defer", "address", "port")
RACED = ("plain", "mptcp", "v6only", "any")
DATA = ("sendto", "sendmsg")  # with the SYN, raced where it does not block
WAYS = ("block", "nonblock")


def left_alone(network, kind, way):
    """As bare: the results, the events, the SYNs; the socket is the program's own."""
    hosts, _, happy = hardening.compare(network, f"{kind}, {way}",
                                        lambda host: victim("kinds", kind, way, host.name, 25))
    check_equal(report(happy).get("socket"), "kept", "socket")
    check_equal(*(sorted(families(network.syns(host))) for host in reversed(hosts)), "SYNs")


def raced(network, kind, way):
    """The other family wins; what kind the socket is stays."""
    host = network.host(kind)
    run = network.run(victim("kinds", kind, way, host.name, 25), happy=True)
    said = report(run)
    protocol = "262" if kind == "mptcp" else "6"
    wanted = {"peer": host.ipv4[0], "socket": "replaced", "so_error": f"0 protocol {protocol}",
              "begin": "ok" if way == "block" else "EINPROGRESS"}
    check_equal({key: said.get(key) for key in wanted}, wanted, f"report ({run.output!r})")
    check_equal(families(network.syns(host)), "64", "SYNs")


for how in WAYS:
    for name in LEFT_ALONE:
        for fault in ("healthy",) if name in DATA and how == "nonblock" else ("healthy", "v6-drop"):
            REGISTRY[f"kind_left_alone.{name}.{how}.{fault}"] = Case(left_alone, (fault,), (name, how))
    for name in RACED if how == "block" else (*RACED, *DATA):
        REGISTRY[f"kind_as_bare.{name}.{how}"] = Case(left_alone, (), (name, how))
        REGISTRY[f"kind_raced.{name}.{how}"] = Case(raced, ("v6-drop",), (name, how))

# Here the data goes with the SYN, as to a server whose cookie is known: to that server alone.
for name in DATA:
    REGISTRY[f"kind_left_alone.{name}.under_way"] = Case(
        left_alone, ("v6-drop",), (name, "nonblock"), lab_options={"client_settings": {"ipv4/tcp_fastopen": 5}})
