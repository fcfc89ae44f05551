"""The lab's network: namespaces, cables, addresses, firewall, and the files of /etc that programs see.

      c (client)                 r (router)                     s (servers)
    +-------------+         +--------------------+         +---------------------+
    | c0 .2 ::2   |---------| r0 .1 ::1          |         | every address there |
    | programs    |         |    | ta            |         | is: fake services,  |
    |             |         |  tundelay          |         | DNS on .53 and ::53 |
    |             |         |    | tb   r1 .1 ::1|---------| s0 .2 ::2           |
    +-------------+         +--------------------+         +---------------------+
       192.0.2.0/24, 2001:db8:1::/64     203.0.113.0/30, 2001:db8:ff::/64

    live addresses of names   198.51.100.1-127     2001:db8:2::/64
    dead ones (silence)       198.51.100.128-255   2001:db8:2:d::/64

What passes the router takes the detour ta - tundelay - tb, which adds the round trip and counts SYNs; faults come after
it (iifname "tb"), so that an ICMP error arrives when the client's connect() has long returned, as in a real network.
"""

import os
import pathlib
import socket
import subprocess

NAMESERVERS = ("198.51.100.53", "2001:db8:2:53::53")
DEAD_NAMESERVER = "198.51.100.253"
# Addresses of names, by what answers there. A name's number goes in; for its second address of a kind, STRIDE more.
ADDRESSES = {
    "live4": "198.51.100.{}".format,
    "live6": "2001:db8:2::{:x}".format,
    "dead4": lambda number: f"198.51.100.{128 + number}",
    "dead6": "2001:db8:2:d::{:x}".format,
}
MAX_HOSTS = 52  # .53 is the DNS server
STRIDE = 60
HOME = "/run/lab/home"
# The client's.
OWN_V4, OWN_V6 = "192.0.2.2", "2001:db8:1::2"
# One way, in ms: servers are 20 ms away and back, nameservers 2.
_WIRE = {"0.0.0.0/0": "10", "::/0": "10"}
_WIRE.update({f"{address}/32": "1" for address in (NAMESERVERS[0], DEAD_NAMESERVER)})
_WIRE.update({f"{NAMESERVERS[1]}/128": "1"})

_SETTINGS = {
    "c": {"ipv6/conf/all/accept_dad": 0, "ipv6/conf/default/accept_dad": 0},
    "r": {"ipv6/conf/all/accept_dad": 0, "ipv6/conf/default/accept_dad": 0, "ipv6/conf/all/forwarding": 1,
          "ipv4/ip_forward": 1, "ipv4/conf/all/rp_filter": 0, "ipv4/conf/default/rp_filter": 0,
          "ipv6/icmp/ratelimit": 0, "ipv4/icmp_ratelimit": 0},
    "s": {"ipv6/conf/all/accept_dad": 0, "ipv6/conf/default/accept_dad": 0},
}

_CABLES = """
link add c0 netns c type veth peer name r0 netns r
link add r1 netns r type veth peer name s0 netns s
"""

_ADDRESSES = {
    "c": """
        link set lo up
        link set c0 up
        addr add 192.0.2.2/24 dev c0
        addr add 2001:db8:1::2/64 dev c0
        route add default via 192.0.2.1
        route add default via 2001:db8:1::1
        """,
    "r": """
        link set lo up
        link set r0 up
        link set r1 up
        addr add 192.0.2.1/24 dev r0
        addr add 2001:db8:1::1/64 dev r0
        addr add 203.0.113.1/30 dev r1
        addr add 2001:db8:ff::1/64 dev r1
        route add default via 203.0.113.2
        route add default via 2001:db8:ff::2
        tuntap add dev ta mode tun
        tuntap add dev tb mode tun
        link set ta addrgenmode none up
        link set tb addrgenmode none up
        route add default dev ta table 101
        route add default dev tb table 102
        route add ::/0 dev ta table 101
        route add ::/0 dev tb table 102
        """,
    # Whatever arrives is for this host: table 100 makes every address local.
    "s": """
        link set lo up
        link set s0 up
        addr add 203.0.113.2/30 dev s0
        addr add 2001:db8:ff::2/64 dev s0
        addr add 198.51.100.53/32 dev lo
        addr add 2001:db8:2:53::53/128 dev lo
        route add default via 203.0.113.1
        route add default via 2001:db8:ff::1
        route add local default dev lo table 100
        route add local ::/0 dev lo table 100
        """,
}

# A batch cannot tell the family of a rule.
_RULES = {
    "r": """
        rule add iif r0 lookup 101
        rule add iif r1 lookup 102
        """,
    "s": """
        rule add iif s0 lookup 100
        """,
}

_FIREWALL = """
table inet lab {{
    chain forward {{
        type filter hook forward priority 0; policy accept;
        iifname != "tb" accept
        ip daddr 198.51.100.128/25 drop
        ip6 daddr 2001:db8:2:d::/64 drop
        {rules}
    }}
}}
"""

_FILES = {
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 {hostname}\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    "/etc/gai.conf": "",
    "/etc/resolv.conf": "{nameservers}",
}


def addresses(kind, number):
    """An address of each family, "live" or "dead"."""
    return [ADDRESSES[f"{kind}6"](number), ADDRESSES[f"{kind}4"](number)]


def isolated_command(command, userns=False):
    """`command` in private namespaces that end with it; itself ends when the caller does, however that ends."""
    return ["setpriv", "--pdeathsig", "KILL", "unshare", "-Urnm" if userns else "-nm", "--pid", "--fork",
            "--kill-child", "--mount-proc", *command]


class LabError(Exception):
    """The lab could not be set up or did not do its part; the text is for people."""


def make_private_files(nameservers):
    """Bind-mounts this lab's own files over those of /etc, and an empty /run, which hides other resolvers' sockets."""
    call("mount", "-t", "tmpfs", "tmpfs", "/run")
    os.makedirs("/run/netns")
    os.makedirs(HOME)
    lines = "".join(f"nameserver {address}\n" for address in nameservers)
    for path, text in _FILES.items():
        if not os.path.exists(path):
            continue
        private = pathlib.Path("/run/lab", os.path.basename(path))
        private.write_text(text.format(nameservers=lines, hostname=socket.gethostname()), encoding="ascii")
        call("mount", "--bind", private, path)


def make_network(fault, client_settings):
    """Makes the namespaces and all in them but the programs. `client_settings`: path under /proc/sys/net -> value."""
    call("ip", "-batch", "-", stdin="".join(f"netns add {name}\n" for name in _SETTINGS))
    for name, settings in _SETTINGS.items():
        wanted = {**settings, **client_settings} if name == "c" else settings
        script = "".join(f"echo {value} > {path}\n" for path, value in wanted.items())
        call("ip", "netns", "exec", name, "sh", "-ec", "cd /proc/sys/net\n" + script)
    call("ip", "-batch", "-", stdin=_CABLES)
    for name, commands in _ADDRESSES.items():
        call("ip", "-n", name, "-batch", "-", stdin=commands)
    for name, commands in _RULES.items():
        for family in ("-4", "-6"):
            call("ip", family, "-n", name, "-batch", "-", stdin=commands)
    for command in fault.client_commands:
        call("ip", "-n", "c", *command.split())
    rules = "\n".join(fault.forward_rules)
    call("ip", "netns", "exec", "r", "nft", "-f", "-", stdin=_FIREWALL.format(rules=rules))


def wire_rules(fault):
    """The delay line's rules, as tundelay takes them."""
    return [f"{prefix}={rule}" for prefix, rule in {**_WIRE, **fault.delays}.items()]


def call(*command, stdin=""):
    """Runs a set-up command; LabError with its message if it fails."""
    done = subprocess.run([str(word) for word in command], input=stdin, text=True, capture_output=True, check=False)
    if done.returncode:
        raise LabError(f"{command[0]} {command[1]}: {done.stderr.strip() or done.returncode}")
