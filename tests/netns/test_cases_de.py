"""Faults that people reported, each as a test: kinds D (Happy Eyeballs gone wrong) and E (interposers and dup2), as far as
they are not in test_cases.py. Case 68 is in test_pending.py, case 60 (SRV) in test_srv.py."""

import pathlib
import subprocess
import time

import hardening
import lab
import sanitizer
import topology
from cases import REGISTRY, Case, case, check, check_between, check_equal, families, victim

ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}  # one dead address takes 3 s
SSH = ["ssh", "-F/dev/null", "-oBatchMode=yes", "-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null"]
REQUEST = b"GET / HTTP/1.0\r\n\r\n"
SYN = "tcp flags syn / fin,syn,rst,ack tcp dport != 53"


def python(script, *arguments):
    """A command line."""
    return [lab.PYTHON, "-c", script, *arguments]


def aria2c(host, file):
    """With the system's resolver: its own one is none of our business."""
    return ["aria2c", "-q", "--async-dns=false", "--allow-overwrite", "-d", "/run/lab", "-o", file, f"http://{host.name}/"]


def wait_until(condition, what, seconds=10):
    """Looks again and again."""
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, f"{what} did not come in {seconds} s")
        time.sleep(0.01)


def router_rules(rules):
    """More rules for the router."""
    topology.call("ip", "netns", "exec", "r", "nft", "-f", "-", stdin=rules)


def connects(network, command, family, low_s, high_s, **options):
    """With libhappy the program reaches a server of this family in time, and ends well."""
    host = network.host("case", **options.pop("host_settings", {}))
    run = network.run(command(host), happy=True, **options)
    accepts = [a for a in network.accepts(host) if network.wait_end(a)["bytes"] or family == a["address"]]
    shown = f"{command(host)[0]}: status {run.status}, output {run.output.strip()[-200:]!r}"
    check(accepts, f"no connection with data; {shown}")
    check_equal(families(accepts), family, shown)
    check_between((accepts[0]["time_ms"] - run.started_ms) / 1000, low_s, high_s, f"seconds to accept(); {shown}")
    return host, run


SLOW_HANDSHAKES = f"""
table inet slow {{
    set seen4 {{ type ipv4_addr . inet_service; flags dynamic,timeout; timeout 10s; }}
    set seen6 {{ type ipv6_addr . inet_service; flags dynamic,timeout; timeout 10s; }}
    chain forward {{
        type filter hook forward priority 1;
        iifname != "tb" accept
        {SYN} ip saddr . tcp sport @seen4 accept
        {SYN} ip6 saddr . tcp sport @seen6 accept
        {SYN} meta nfproto ipv4 add @seen4 {{ ip saddr . tcp sport }} drop
        {SYN} meta nfproto ipv6 add @seen6 {{ ip6 saddr . tcp sport }} drop
    }}
}}
"""


@case()
def case_49_attempts_outlive_the_next_one(network):
    """Both paths lose the first SYN: the first attempt is alive when the next one starts, and wins at its second SYN."""
    router_rules(SLOW_HANDSHAKES)
    connects(network, lambda host: ["nc", host.name, "80"], "6", 1.0, 1.4, stdin=REQUEST)
    connects(network, lambda host: ["curl", "-s", f"http://{host.name}/"], "6", 1.0, 1.4)


TIMEOUTS = {
    "curl": lambda host: ["curl", "-s", "--connect-timeout", "2", f"http://{host.name}/"],
    "wget": lambda host: ["wget", "-q", "--connect-timeout=2", "--tries=1", f"http://{host.name}/"],
    "nc": lambda host: ["nc", "-w", "2", host.name, "80"],
    "ssh": lambda host: [*SSH, "-oConnectTimeout=2", host.name, "true"],
    "psql": lambda host: ["psql", f"host={host.name} connect_timeout=2", "-c", "1"],
    "python": lambda host: python("import socket, sys; socket.create_connection((sys.argv[1], 80), timeout=2)", host.name),
}


def user_timeout(network, command):
    """Everything is dead: the same status, no later than bare."""
    _, bare, happy = hardening.run_both(network, command)
    check_equal(happy.status, bare.status, f"exit status ({happy.output})")
    check_between(happy.seconds(), 1, bare.seconds() + 0.3, "seconds")


for program, make_command in TIMEOUTS.items():
    REGISTRY[f"case_50_timeout_of_the_user.{program}"] = Case(user_timeout, ("all-dead",), (make_command,))


@case("v6-drop")
def case_50_short_timeout(network):
    """A time-out of 0.6 s is enough for the second family."""
    script = "import socket, sys; s = socket.create_connection((sys.argv[1], 7), timeout=0.6); s.send(b'x'); s.recv(1)"
    _, run = connects(network, lambda host: python(script, host.name), "4", 0.2, 0.7)
    check_equal(run.status, 0, "exit status")


def errno_when_all_fails(network, how):
    """The errno of the address that the program named, by SO_ERROR, by connect() again, and by a blocking connect()."""
    command = {"blocking": lambda host: victim("walk", host.name, 80),
               "again": lambda host: victim("asks", "repeated", host.name, 80),
               "so_error": lambda host: victim("waiting", "poll-out", 1, host.name, 80)}[how]
    _, bare, _ = hardening.run_both(network, command)
    hardening.compare(network, f"case 52: {how}", command, sooner=True, status=bare.status)


for label, names in {"refused": ("all-reset",), "prohibited": ("v6-prohibited", "v4-reset"), "mixed": ("v6-drop", "v4-reset"),
                     "no_route": ("v6-noroute", "v4-noroute")}.items():
    for way in ("blocking", "again", "so_error"):
        if label == "mixed" and way == "so_error":
            continue  # the v4 errno may be known by then: at once instead of a reset later, which the victim shows
        REGISTRY[f"case_52_errno_when_all_fails.{label}.{way}"] = Case(errno_when_all_fails, names, (way,),
                                                                       lab_options=ONE_RETRY)

FIRST_TWO_DEAD = {"addresses": ["198.51.100.201", "198.51.100.202", "198.51.100.99"]}
MANY = {
    "curl": (lambda host: ["curl", "-s", f"http://{host.name}/"], b""),
    "wget": (lambda host: ["wget", "-q", "-O-", f"http://{host.name}/"], b""),
    "nc": (lambda host: ["nc", host.name, "80"], REQUEST),
    "redis-cli": (lambda host: ["redis-cli", "-h", host.name, "-p", "7", "ping"], b""),
    "socat": (lambda host: ["socat", "-", f"TCP:{host.name}:80"], REQUEST),
    "aria2c": (lambda host: aria2c(host, "case53"), b""),
}


def first_of_one_family_dead(network, command, stdin):
    """Family-only racing does not help when two of three addresses of one family are dead."""
    connects(network, command, "4", 0.25, 0.8, host_settings=FIRST_TWO_DEAD, stdin=stdin, seconds=3)


for program, (make_command, given) in MANY.items():
    REGISTRY[f"case_53_first_a_record_dead.{program}"] = Case(first_of_one_family_dead, (), (make_command, given))


@case("rtt=1", seconds=60)
def case_56_one_connection_each(network):
    """Eight addresses, all healthy and near: one SYN, and one connection with data, per run."""
    addresses = [f"2001:db8:2::{n}" for n in range(70, 74)] + [f"198.51.100.{n}" for n in range(70, 74)]
    host = network.host("many", addresses=addresses)
    for number in range(50):
        words = ["curl", "-s", f"http://{host.name}/"] if number % 2 else ["nc", host.name, "80"]
        check_equal(network.run(words, happy=True, stdin=REQUEST, trace=False).status, 0, "exit status")
    accepts = network.accepts(host)
    check_equal((len(network.syns(host)), len(accepts)), (50, 50), "SYNs and connections")
    check(all(network.wait_end(accept)["bytes"] for accept in accepts), "a connection carried no data")


BOUND = {
    "curl": (lambda host: ["curl", "-s", "--interface", "192.0.2.11", f"http://{host.name}/"], b""),
    "nc": (lambda host: ["nc", "-4", "-s", "192.0.2.11", "-p", "5555", host.name, "80"], REQUEST),
    "ssh": (lambda host: [*SSH, "-b", "192.0.2.11", host.name, "true"], b""),
}


@case("v6-drop")
def case_57_source_address_is_kept(network):
    """Bound to an IPv4 address: IPv4 SYNs only, from there, at once."""
    topology.call("ip", "-n", "c", "addr", "add", "192.0.2.11/24", "dev", "c0")
    for name, (command, stdin) in BOUND.items():
        host = network.host(name)
        run = network.run(command(host), happy=True, stdin=stdin, seconds=3)
        syns = network.syns(host)
        check_equal([(s["source"], families([s])) for s in syns], [("192.0.2.11", "4")], f"{name}: SYNs ({run.output})")
        check(name != "nc" or syns[0]["source_port"] == 5555, "the port was not kept")
        check_between((network.accepts(host)[0]["time_ms"] - run.started_ms) / 1000, 0, 0.3, f"{name}: seconds")


@case("v6-drop")
def case_57_bound_to_ipv6(network):
    """Bound to an IPv6 address in a network that drops IPv6: fails as bare, and no IPv4 SYN."""
    hosts, bare, happy = hardening.run_both(network, lambda host: [
        "wget", "-q", "--tries=1", "--connect-timeout=1", f"--bind-address={topology.OWN_V6}", f"http://{host.name}/"])
    check_equal(happy.status, bare.status, "exit status")
    check_between(happy.seconds(), 0.9, bare.seconds() + 0.3, "seconds")
    check_equal(families(network.syns(hosts[1])), families(network.syns(hosts[0])), "SYNs")


LEAKS = """
import os, resource, select, socket, sys, time
def fds(): return len(os.listdir('/proc/self/fd'))
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
begin, good = fds(), 0
for n in range(80):
    family, kind, proto, _, where = socket.getaddrinfo(sys.argv[1], 7, type=socket.SOCK_STREAM)[0]
    s = socket.socket(family, kind | socket.SOCK_NONBLOCK, proto)
    s.connect_ex(where)
    p = select.poll()
    p.register(s, select.POLLOUT)
    if n % 2 == 0:
        p.poll(100 if n % 4 else 260)
    else:
        good += bool(p.poll(5000)) and s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    s.close()
for _ in range(400):
    if fds() == begin: break
    time.sleep(0.02)
print(good, fds() - begin)
"""


@case("v6-drop", seconds=60)
def case_58_losers_are_closed(network):
    """Half of eighty sockets closed while the race is on: nothing stays open, nothing is connecting afterwards."""
    host = network.host("case")
    run = network.run(python(LEAKS, host.name), happy=True, seconds=50, trace=False)
    check_equal(run.output, "40 0\n", "successes and fds left")
    left = network.run(["ss", "-tnH", "state", "syn-sent", "state", "established"]).output
    check_equal(left, "", "sockets left")


FEW_NUMBERS = """
import errno, os, resource, select, socket, sys, time
def fds(): return len(os.listdir('/proc/self/fd'))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
begin, count, good, short = fds(), 0, 0, 0
while count < 500:
    sockets = []
    for _ in range(25):
        family, kind, proto, _, where = socket.getaddrinfo(sys.argv[1], 7, type=socket.SOCK_STREAM)[0]
        try:
            s = socket.socket(family, kind | socket.SOCK_NONBLOCK, proto)
        except OSError as error:
            short += error.errno == errno.EMFILE
            continue
        s.connect_ex(where)
        sockets.append(s)
    count += 25
    if sys.argv[2] == 'drop':
        select.select([], sockets, [], 0.1)
    for n, s in enumerate(sockets):
        if sys.argv[2] != 'drop' and n % 2:
            select.select([], [s], [], 5)
            good += s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 and bool(s.getpeername())
        s.close()
for _ in range(400):
    if fds() == begin: break
    time.sleep(0.02)
print(good, short, fds() - begin)
"""


def few_numbers(network, way, wanted):
    """RLIMIT_NOFILE 64 leaves no number for a hidden socket: five hundred connects, half of them or all closed while
    they are pending, and the program never lacks a number of its own, nor is one left."""
    host = network.host("case")
    run = network.run(python(FEW_NUMBERS, host.name, way), happy=True, seconds=50, trace=False)
    check_equal(run.output, f"{wanted} 0 0\n", "successes, sockets that could not be had, and fds left")
    check_equal(network.run(["ss", "-tnH", "state", "syn-sent"]).output, "", "sockets left")


for label, faults_of_case, way, wanted in (("healthy", (), "connect", 240), ("v6_drop", ("v6-drop",), "drop", 0)):
    REGISTRY[f"case_58_few_numbers.{label}"] = Case(few_numbers, faults_of_case, (way, wanted), seconds=60)

BIG_PACKETS_VANISH = """
table inet mtu {
    chain forward {
        type filter hook forward priority 1;
        iifname "ta" meta nfproto ipv6 tcp sport 443 meta length > 160 drop
    }
}
"""


@case()
def case_61_tls_never_completes(network):
    """TCP opens, large packets vanish: as bare, and never a hang beyond the user's limit, nor data on the other family."""
    router_rules(BIG_PACKETS_VANISH)
    hosts, bare, happy = hardening.run_both(network, lambda host: ["curl", "-sk", "--max-time", "3", f"https://{host.name}/"])
    check_equal((bare.status, happy.status), (28, 28), "exit status")
    check_between(happy.seconds(), 2.5, bare.seconds() + 0.3, "seconds")
    check_equal(families(network.accepts(hosts[1])), "6", "connections")


SWITCHES = {
    "curl-4": ("4", lambda host: ["curl", "-4s", "--connect-timeout", "1", f"http://{host.name}/"], b""),
    "ssh-6": ("6", lambda host: [*SSH, "-6", "-oConnectTimeout=1", host.name, "true"], b""),
    "nc-4": ("4", lambda host: ["nc", "-4", "-w", "1", host.name, "80"], REQUEST),
    "wget-6": ("6", lambda host: ["wget", "-6q", "-O-", "--tries=1", "--connect-timeout=1", f"http://{host.name}/"], b""),
}


def family_switch(network, family, command, stdin):
    """A family that the user forces is the only one that sees SYNs; the end is as bare."""
    hosts, bare, happy = hardening.run_both(network, command, stdin=stdin)
    check_equal((happy.status, hardening.masked(happy.output, hosts[1])), (bare.status, hardening.masked(bare.output, hosts[0])),
                "status and output")
    check_between(happy.seconds(), 0, bare.seconds() + 0.3, "seconds")
    check_equal(set(families(network.syns(hosts[1]))), {family}, "families of SYNs")


for program, (wanted, make_command, given) in SWITCHES.items():
    for names in (("healthy",), (f"v{wanted}-drop",)):
        REGISTRY[f"case_63_explicit_family.{program}.{names[0]}"] = Case(family_switch, names, (wanted, make_command, given))


@case()
def case_63_ping(network):
    """No TCP at all. (The lab's servers answer no echo requests.)"""
    hosts, _, _ = hardening.compare(network, "case 63: ping -4", lambda host: ["ping", "-4", "-c1", "-W1", "-q", host.name],
                                    status=1)
    check_equal(network.syns(hosts[1]), [], "SYNs")


STALE = """
import select, socket, sys
a, b, dead, how = sys.argv[1:5]
for name in (a, b):
    socket.getaddrinfo(name, 7, type=socket.SOCK_STREAM)
s = socket.socket()
if how == 'nonblocking':
    s.setblocking(False)
    s.connect_ex((dead, 7))
    select.select([], [s], [], 5)
    s.setblocking(True)
else:
    s.connect((dead, 7))
print(s.getpeername()[0]); s.send(b'x'); s.recv(1)
"""


def stale_intent(network, how):
    """Two names share an address: only the endpoints of the one that was looked up last take part."""
    dead, other, meant = "198.51.100.211", "198.51.100.112", "198.51.100.113"
    first, second = network.host("first", addresses=[dead, other]), network.host("second", addresses=[dead, meant])
    run = network.run(python(STALE, first.name, second.name, dead, how), happy=True, seconds=8)
    check_equal(run.output, f"{meant}\n", "peer")
    check_equal([s["address"] for s in network.syns(first)], [dead], "SYNs to the first name's addresses")


for way in ("blocking", "nonblocking"):
    REGISTRY[f"case_64_stale_intent.{way}"] = Case(stale_intent, (), (way,))

# -- E --

NODE = "const s = require('net').connect(7, process.argv[1]); s.on('connect', () => s.write('x')); s.on('data', () => s.end());" \
       "s.on('error', () => process.exit(1))"
ASYNCIO = """
import asyncio, sys
async def main():
    r, w = await asyncio.open_connection(sys.argv[1], 7)
    w.write(b'x'); await w.drain(); assert await r.read(1) == b'x'; w.close()
asyncio.run(main())
"""


def event_loop(network, command, environment):
    """The connect callback fires; the registration can be changed and removed afterwards."""
    _, run = connects(network, command, "4", 0.2, 1.0, environment=environment)
    check_equal(run.status, 0, "exit status")


for label, make_command, settings in (
        ("node", lambda host: ["node", "-e", NODE, host.name], None),
        ("node-io_uring", lambda host: ["node", "-e", NODE, host.name], {"UV_USE_IO_URING": "1"}),
        ("node-one-family-at-a-time", lambda host: ["node", "--no-network-family-autoselection", "-e", NODE, host.name], None),
        ("asyncio", lambda host: python(ASYNCIO, host.name), None),
        ("aria2c", lambda host: aria2c(host, "case65"), None)):
    REGISTRY[f"case_65_epoll_registration.{label}"] = Case(event_loop, ("v6-drop",), (make_command, settings))

WAITERS = {
    "psql": lambda host: ["psql", f"host={host.name} port=25", "-c", "1"],
    "mosquitto_pub": lambda host: ["mosquitto_pub", "-h", host.name, "-t", "t", "-m", "m"],
    "lftp": lambda host: ["lftp", "-c", f"set net:max-retries 1; cat http://{host.name}/"],
    "curl": lambda host: ["curl", "-s", f"http://{host.name}/"],
    "python": lambda host: python("import socket, sys; s = socket.create_connection((sys.argv[1], 7), timeout=5); "
                                  "assert s.getpeername()[0].startswith('198.'); s.send(b'x'); s.recv(1)", host.name),
}


def already_waiting(network, command):
    """A call that waits already when the socket is replaced sees the new one."""
    connects(network, command, "4", 0.1, 0.7)


for program, make_command in WAITERS.items():
    REGISTRY[f"case_67_already_waiting.{program}"] = Case(already_waiting, ("v6-drop",), (make_command,))

CHILD = """
import fcntl, os, select, socket, subprocess, sys
family, kind, proto, _, where = socket.getaddrinfo(sys.argv[1], 7, type=socket.SOCK_STREAM)[0]
s = socket.socket(family, kind | socket.SOCK_NONBLOCK, proto)
fcntl.fcntl(s, fcntl.F_SETOWN, os.getpid())
s.connect_ex(where)
select.select([], [], [], 0.4)
print(subprocess.run(['ls', '/proc/self/fd'], close_fds=False, capture_output=True, text=True).stdout.split())
s2 = os.dup(s.fileno())
os.set_inheritable(s2, True)
print(subprocess.run(['ls', '/proc/self/fd'], close_fds=False, capture_output=True, text=True).stdout.split())
select.select([], [s], [], 1.5)
print(fcntl.fcntl(s, fcntl.F_GETFL), fcntl.fcntl(s, fcntl.F_GETFD), fcntl.fcntl(s2, fcntl.F_GETFD),
      fcntl.fcntl(s, fcntl.F_GETOWN) == os.getpid())
"""


@case("first-address-dead")
def case_72_child_in_mid_race(network):
    """A child of a process whose race is on finds the fds that it finds bare; the flags are the program's afterwards."""
    hosts, _, _ = hardening.compare(network, "case 72: child in mid-race", lambda host: python(CHILD, host.name), sooner=True,
                                    slack_s=1)
    check_equal(families(network.accepts(hosts[1])), "4", "connections")


PHP_CURL = "$c = curl_init('http://NAME/'); curl_setopt($c, CURLOPT_RETURNTRANSFER, 1);" \
           "exit(curl_exec($c) === false ? curl_errno($c) : 0);"


@case("v6-drop")
def case_81_php_curl(network):
    """libcurl as a module that PHP loads by dlopen() is raced, or races by itself."""
    _, run = connects(network, lambda host: ["php", "-r", PHP_CURL.replace("NAME", host.name)], "4", 0.1, 0.8)
    check_equal(run.status, 0, "exit status")


PROXY = """
import socket
listener = socket.create_server(('127.0.0.1', 1080))
print('ready', flush=True)
s, _ = listener.accept()
s.recv(3), s.sendall(bytes([5, 0]))
head = s.recv(5)
name = s.recv(head[4]).decode()
s.recv(2), s.sendall(bytes([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
s.recv(4096)
s.sendall(('HTTP/1.0 200 OK\\r\\n\\r\\nproxied ' + name + '\\n').encode())
s.close()
"""
PROXYCHAINS = "strict_chain\nproxy_dns\n[ProxyList]\nsocks5 127.0.0.1 1080\n"


@case("v6-drop")
def case_81_second_preload(network):
    """proxychains4 preloads a library of its own: everything goes to its proxy, which is not raced, and nothing else."""
    settings = pathlib.Path("/run/lab/proxychains.conf")
    settings.write_text(PROXYCHAINS, encoding="ascii")
    tail = ["curl", "-s"]
    wrapped = ["proxychains4", "-q", "-f", settings, *tail]
    behind = {"PROXYCHAINS_CONF_FILE": str(settings), "PROXYCHAINS_QUIET_MODE": "1",
              **sanitizer.preload(lab.LIBRARY, "libproxychains.so.4")}
    for way, command, options in (("bare", wrapped, {}), ("happy", wrapped, {"happy": True, "by_happy_run": True}),
                                  ("behind", tail, {"environment": behind})):
        host = network.host(way)
        proxy = network.start(python(PROXY))
        wait_until(lambda started=proxy: "ready" in started.output_path.read_text(encoding="ascii"), "the proxy")
        run = network.run([*command, f"http://{host.name}/"], **options)
        proxy.wait(5)
        check_equal((run.status, run.output), (0, f"proxied {host.name}\n"), f"status and output, {way}")
        check_equal(network.syns(host), [], f"SYNs to the name's own addresses, {way}")
        check_equal([query for query in network.find("query") if query["name"] == host.name], [],
                    f"queries for what the proxy is to look up, {way}")


@case()
def case_81_static_program(network):
    """Nothing can be preloaded into a static program: it runs as it does bare, and keeps its status."""
    program = "/run/lab/static"
    subprocess.run(["cc", "-static", "-w", "-o", program, lab.HERE / "victims/walk.c"], check=True, capture_output=True)
    for words, status in (([], 0), (["-o", "192.0.2.77"], 1)):  # none of the name's addresses
        hosts = [network.host(label) for label in ("bare", "happy")]
        bare, happy = (network.run([program, *words, host.name, "7"], happy=host is hosts[1], by_happy_run=host is hosts[1],
                                   trace=False) for host in hosts)
        check_equal(bare.status, status, f"bare's exit status ({bare.output!r})")
        said = happy.output.replace(f"happy-run: '{program}' is statically linked: nothing can be preloaded into it\n", "")
        check_equal((happy.status, hardening.masked(said, hosts[1])), (bare.status, hardening.masked(bare.output, hosts[0])),
                    f"status {status}")
