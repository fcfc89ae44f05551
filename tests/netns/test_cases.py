"""Faults that people reported, each as a test: the right outcome of a program that hung, or was harmed by an interposer.

The numbers are those of the collection of cases (kinds A: programs hanging on broken IPv6; E: interposers and dup2).
"""

import base64
import contextlib
import re
import statistics
import zlib

import hardening
from cases import LIGHT, REGISTRY, Case, case, check, check_between, check_equal, families, victim
from lab import LabError

ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}  # one dead address takes 3 s
LOOP = "import socket,sys\ns = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"


# A busy machine (two cores, six programs that want them) takes so much longer to start a program.
START_S = 0.4


def connected(network, command, within_s, family="4", status=0, count=1, more=False, host_settings=None, **options):
    """The program, helped, reaches the living family in time from its start, by `count` connections, or by more."""
    host = network.host("case", **(host_settings or {}))
    run = network.run(command(host), happy=True, seconds=8, **options)
    with contextlib.suppress(LabError):  # a program that sends nothing may end before its connection is accepted
        network.wait_accepts(host, count, 1)
    accepts = network.accepts(host)
    shown = f"status {run.status}, output {run.output.strip()[-300:]!r}"
    expected = family * (max(count, len(accepts)) if more else count)
    check_equal(families(accepts), expected, f"connections ({shown})")
    check_between((accepts[0]["time_ms"] - run.started_ms) / 1000, 0, within_s + START_S, "seconds to the server's accept()")
    # Whatever the start has taken: between the first SYN and the connection lies one attempt delay at most.
    check_between((accepts[0]["time_ms"] - network.syns(host)[0]["time_ms"]) / 1000, 0, max(0.5, within_s - 0.5),
                  "seconds from the first SYN to accept()")
    if status is not None:
        check_equal(run.status, status, f"exit status ({shown})")
    return host, run


# -- A: programs hanging on broken IPv6 --


@case("v6-drop")
def case_01_wget_dead_v6(network):
    """wget waits for the kernel's whole SYN cycle at an IPv6 address that is silent."""
    host, run = connected(network, lambda host: ["wget", "-q", "-O-", f"http://{host.name}/"], 0.6)
    check_equal(run.output, "hello\n", "body")
    first, second = network.syns(host)
    check_equal(families([first, second]), "64", "SYNs")
    check_between(second["time_ms"] - first["time_ms"], 200, 300, "ms between the SYNs")


SSH = ["ssh", "-F/dev/null", "-oBatchMode=yes", "-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null"]


@case("v6-drop")
def case_02_ssh_filtered_on_v6(network):
    """ssh's port is filtered on IPv6 only."""
    connected(network, lambda host: [*SSH, host.name, "true"], 0.5, status=255)


@case("v6-drop")
def case_02_git_over_ssh_filtered_on_v6(network):
    """The same for the ssh that git starts."""
    connected(network, lambda host: ["git", "ls-remote", f"ssh://{host.name}/x"], 0.6, status=128,
              environment={"GIT_SSH_COMMAND": " ".join(SSH)})


@case("v6-drop")
def case_03_git_protocol(network):
    """git:// walks the addresses with blocking connects."""
    connected(network, lambda host: ["git", "ls-remote", f"git://{host.name}/x"], 0.6)


@case("v6-noroute")
def case_03_git_protocol_no_route(network):
    """The same without an IPv6 route."""
    connected(network, lambda host: ["git", "ls-remote", f"git://{host.name}/x"], 0.15)


@case("v6-drop")
def case_03_git_http(network):
    """libcurl races by itself and must not be slowed down."""
    connected(network, lambda host: ["git", "ls-remote", f"http://{host.name}/x"], 0.6, status=None, count=1)


@case("v6-noroute")
def case_03_git_http_no_route(network):
    """The same without an IPv6 route."""
    connected(network, lambda host: ["git", "ls-remote", f"http://{host.name}/x"], 0.15, status=None)


@case("v6-drop")
def case_04_lftp(network):
    """lftp stays in its connecting state."""
    _, run = connected(network, lambda host: ["lftp", "-c", f"set net:max-retries 1; cat http://{host.name}/"], 0.7)
    check_equal(run.output, "hello\n", "body")


@case("v6-drop")
def case_06_psql(network):
    """libpq's asynchronous connect never leaves the first dead address."""
    host, run = connected(network, lambda host: ["psql", f"host={host.name} port=25 dbname=x", "-c", "1"], 0.5, status=2)
    check_between(run.seconds(), 0, 1 + START_S, "seconds")
    check_equal(network.wait_end(network.accepts(host)[0])["bytes"], 8, "bytes: those of an SSLRequest")


@case("v6-drop")
def case_06_psycopg_async(network):
    """Drivers of Python that wait for libpq by themselves: in asyncio (psycopg 3), and by select() (psycopg2)."""
    scripts = {
        "psycopg": "import asyncio, psycopg, sys\n"
                   "async def main(): await psycopg.AsyncConnection.connect(sys.argv[1])\n"
                   "try: asyncio.run(main())\n"
                   "except psycopg.OperationalError: sys.exit(2)\n",
        "psycopg2": "import psycopg2, select, sys\n"
                    "try:\n"
                    "    c = psycopg2.connect(sys.argv[1], async_=True)\n"
                    "    while (state := c.poll()) != psycopg2.extensions.POLL_OK:\n"
                    "        reading = [c] if state == psycopg2.extensions.POLL_READ else []\n"
                    "        select.select(reading, [] if reading else [c], [], 5)\n"
                    "except psycopg2.OperationalError: sys.exit(2)\n"}
    for script in scripts.values():
        _, run = connected(network, lambda host: ["/usr/bin/python3", "-c", script, f"host={host.name} port=25 dbname=x"], 1.5,
                           status=2, more=True)  # psycopg 3.2 tries each address of its own list until one speaks
        check("Traceback" not in run.output, run.output)


@case("v4-drop")
def case_07_redis_dead_v4(network):
    """redis-cli asks for IPv4 first, and has no time-out: no slower than bare."""
    hosts, _, _ = hardening.run_both(network, lambda host: ["redis-cli", "-h", host.name, "-p", "80", "ping"], seconds=4)
    accepts = network.accepts(hosts[1])
    check(accepts and families(accepts)[0] == "6" or not network.accepts(hosts[0]), "bare connected, libhappy did not")


@case("v4-drop", **ONE_RETRY)
def case_07_ipv4_only_askers(network):
    """Programs that only ask for IPv4 end as bare, no later."""
    perl = 'use IO::Socket::INET; IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 80) or die "failed\n"'
    hardening.compare(network, "Perl's IO::Socket::INET, IPv4 dead", lambda host: ["perl", "-e", perl, host.name],
                      status=110)


@case("v4-drop", **ONE_RETRY)
def case_07_socat(network):
    """socat asks for the first address of either family: it gets what it gets bare, no later, or connects."""
    _, bare, happy = hardening.run_both(network, lambda host: ["socat", "-u", "OPEN:/dev/null", f"TCP:{host.name}:80"])
    check(happy.status in (0, bare.status), f"status {happy.status}, bare {bare.status} ({happy.output})")
    check_between(happy.seconds(), 0, bare.seconds() + 0.3, "seconds")


@case("v6-drop")
def case_08_urllib(network):
    """A GET that takes two minutes because IPv6 stands first."""
    script = "import urllib.request as u, sys; print(u.urlopen(f'http://{sys.argv[1]}/').read())"
    _, run = connected(network, lambda host: ["/usr/bin/python3", "-c", script, host.name], 0.8)
    check_equal(run.output, "b'hello\\n'\n", "body")


@case("v6-drop")
def case_08_pip(network):
    """pip asks an index that has nothing for it: over IPv4, and soon."""
    def command(host):
        return ["/usr/bin/python3", "-m", "pip", "--isolated", "--disable-pip-version-check", "--no-cache-dir", "--retries", "0",
                "download", "--index-url", f"http://{host.name}/simple", "--trusted-host", host.name, "x"]

    host = network.host("pip")
    run = network.run(command(host), happy=True, seconds=15)
    check_equal(run.status, 1, f"status (output {run.output!r})")
    accepts = network.accepts(host)
    check(accepts and set(families(accepts)) == {"4"}, f"connections: {accepts}")
    syns = network.syns(host)
    check_between((accepts[0]["time_ms"] - syns[0]["time_ms"]) / 1000, 0.2, 0.6, "seconds from the first SYN to accept()")


@case("v6-drop")
def case_08_peer_is_the_winner(network):
    """getpeername() and the family are the winner's."""
    script = LOOP + "print(s.getpeername()); s.send(b'x'); s.recv(1)"
    host, run = connected(network, lambda host: ["/usr/bin/python3", "-c", script, host.name, "7"], 0.8)
    check_equal(run.output, f"('{host.ipv4[0]}', 7)\n", "peer")


# The source of JAVA_CLASS: a JRE cannot compile.
# javac -g:none --release 8 J.java, compressed by zlib, in base64. (Java itself remembers whom it meant to reach.)
_JAVA = """
import java.net.*;
class J {
    public static void main(String[] a) throws Exception {
        InetAddress.getByName("localhost");
        long began = System.nanoTime();
        Socket s = new Socket();
        s.connect(new InetSocketAddress(a[0], 7), 5000);
        System.out.println((System.nanoTime() - began) / 1000000);
        s.getOutputStream().write(1);
        System.out.println(s.getInputStream().read());
    }
}
"""
JAVA_CLASS = (
    "eNptUn9vEkEQfStHF86zQIEWa7W1ajxQRGutP6iVUmsFSWuCwTT+dcIGr8IegUPtN/Dr6B9HYxM/gB/KOAsFoWGT29nbeTPvzez8+fvrN4B1vN"
    "FxAT4OzYAfMwzhI+uLlWlYsp45+Hgkqi7DzKYtbXeLwWcmKwEEGIINp2o1PjkdV4eOixyGgUuYZYj1o6VwMwXatmu1tuh0CF8Xbv5432oKhpRZ"
    "+k9Rdtu2rGeTpWlxWR1hRDjmDEQRm5BWPu64oskQkJZ03tkqL4krcswzhEa5yk71syCJcVXgZYbFCZaB94xLRwJXVAuWGOanKCwkKyrPNQPLWG"
    "HgVUfKfnOWzNI5vqF6CglSAasGbuAm6XO6BI8P0LaTeUt5XcourGbWD7VC+ZwOE0mOlIE7uMsQnQIm8pb6a0gGzSwOdN0zkMF9qp0afdB1W90R"
    "OGEmR5TjHmruGh5yrBt4hI3hy50DMfi/tm1XKKazDjwx8BTPGGaJqSDHkAtjRGMO4tnEc44tAy+QGytpIlgjU+u/YUG1IK/q3+B4ycCK5N1xak"
    "pD07Klep4PUyaowqDvfquKlms7ssNRHFL1USMPVrBDA6+W2mnkwbBLpwhZpm5SPbAffUAQr7BHMOWuEFQjW5zjJwi+P0Eod4r4YQ8L++lTJA5T"
    "vrUw72ExEv3u4epPXCfEsojhVtPD7bSHtObhAV3T8bGHrIftAcdr+jQiLgD/ABBL2BM=")


@case("v6-drop", seconds=60)
def case_09_java(network):
    """A JVM that prefers IPv6 gives up, or waits."""
    (network.folder / "J.class").write_bytes(zlib.decompress(base64.b64decode(JAVA_CLASS)))
    host = network.host("case")
    run = network.run(["java", "-Djava.net.preferIPv6Addresses=true", "-cp", network.folder, "J", host.name], happy=True,
                      seconds=25)
    check_equal(run.status, 0, f"exit status ({run.output})")
    took, echo = run.output.split("\n")[:2]
    check(int(took) < 600 and echo == "1", f"{took} ms, {echo}")
    check_equal(families(network.accepts(host)), "4", "connections")


@case("v6-drop")
def case_10_submission_dead_v6(network):
    """A mail client's port is dead on IPv6."""
    connected(network, lambda host: ["msmtp", f"--host={host.name}", "--port=25", "--from=a@x.test", "b@x.test"], 0.6)


@case("v6-drop")
def case_10_swaks_dead_v6(network):
    """swaks looks up IPv4 only or walks; exactly one session."""
    connected(network, lambda host: ["swaks", "--server", host.name, "--quit-after", "CONNECT"], 0.8)


TWO_OF_IPV4 = {"addresses": ["198.51.100.190", "198.51.100.90"]}
SUBMITTERS = {
    "msmtp": lambda host: ["msmtp", f"--host={host.name}", "--port=25", "--from=a@x.test", "b@x.test"],
    "swaks": lambda host: ["swaks", "--server", host.name, "--quit-after", "EHLO"],
}


def submission_first_of_two_v4_dead(network, command):
    """Two A records, the first is dead: exactly one session."""
    host, _ = connected(network, command, 0.6, host_settings=TWO_OF_IPV4)
    check(network.wait_end(network.accepts(host)[0])["bytes"] > 0, "no EHLO")


for program, command in SUBMITTERS.items():
    REGISTRY[f"case_10_submission_first_of_two_v4_dead.{program}"] = Case(submission_first_of_two_v4_dead, (), (command,))

RUBY = "require 'socket'; s = TCPSocket.new(ARGV[0], 7); s.write('x'); s.read(1)"
PHP = "echo file_get_contents('http://' . $argv[1] . '/');"
PERL = "use IO::Socket::IP; my $s = IO::Socket::IP->new(PeerHost => $ARGV[0], PeerService => 7, Type => 1) or die; " \
       "$s->syswrite('x'); $s->sysread(my $r, 1)"
TCL = "set s [socket [lindex $argv 0] 7]; puts -nonewline $s x; flush $s; read $s 1; close $s"
LEGACY = {
    "telnet": (0.7, lambda host: ["telnet", host.name], {"stdin": None}),
    "ftp": (0.7, lambda host: ["ftp", "-n", host.name, "25"], {}),
    "nc": (0.7, lambda host: ["nc", host.name, "7"], {"stdin": b"x"}),
    "nc-z": (0.7, lambda host: ["nc", "-z", host.name, "7"], {}),
    "mysql": (0.7, lambda host: ["mysql", "-h", host.name, "-P", "25", "-e", "quit"], {}),
    "ldapsearch": (0.7, lambda host: ["ldapsearch", "-x", "-H", f"ldap://{host.name}", "-b", "dc=test"], {}),
    "mosquitto_pub": (0.7, lambda host: ["mosquitto_pub", "-h", host.name, "-t", "t", "-m", "m"], {}),
    "rsync": (0.7, lambda host: ["rsync", f"rsync://{host.name}:25/x"], {}),
    "lynx": (0.7, lambda host: ["lynx", "-dump", f"http://{host.name}/"], {}),
    "w3m": (0.7, lambda host: ["w3m", "-dump", f"http://{host.name}/"], {}),
    "php": (0.7, lambda host: ["php", "-r", PHP, host.name], {}),
    "ruby": (1.5, lambda host: ["ruby", "-e", RUBY, host.name], {}),
    "perl": (0.7, lambda host: ["perl", "-e", PERL, host.name], {}),
    "tclsh": (0.7, lambda host: ["sh", "-c", f"echo '{TCL}' | tclsh /dev/stdin {host.name}"], {}),
    "s_client": (0.7, lambda host: ["openssl", "s_client", "-connect", f"{host.name}:443"], {}),
    "bash": (0.7, lambda host: ["bash", "-c", f"exec 3<>/dev/tcp/{host.name}/7; echo x >&3; head -c1 <&3"], {}),
}


def legacy_client(network, within_s, command, options):
    """Stalls in unrelated clients as soon as AAAA records are published without working IPv6."""
    connected(network, command, within_s, status=None, **options)


for program, (within_s, command, options) in LEGACY.items():
    REGISTRY[f"case_12_legacy.{program}"] = Case(legacy_client, ("v6-drop",), (within_s, command, options))

NODE = "const s=require('net').connect({port:7,host:process.argv[1],autoSelectFamily:true});s.on('connect',()=>s.end('x'));s.on('error',()=>process.exit(1))"
RACERS = {
    "apt": lambda host: ["/usr/lib/apt/apt-helper", "-oAcquire::Retries=0", "download-file", f"http://{host.name}/x",
                         f"/run/lab/{host.name}"],
    "curl": lambda host: ["curl", "-s", f"http://{host.name}/"],
    "node": lambda host: ["node", "-e", NODE, host.name],
    "aria2c": lambda host: ["aria2c", "-q", "--allow-overwrite", "-d", "/run/lab", "-o", f"a-{host.name}",
                            f"http://{host.name}/"],
}


# aria2c sees at the next turn of its loop, now at once and now after a second, that its resolver has an answer.
OWN_PACE_S = {"aria2c": 1.1}


def racer(network, program):
    """Clients that race by themselves get no slower, and no busier: at most two SYNs for an address, four in all."""
    hosts, bare, happy = hardening.run_both(network, RACERS[program])
    check_equal(happy.status, bare.status, f"exit status ({happy.output})")
    check_between(happy.seconds(), 0, bare.seconds() + OWN_PACE_S.get(program, 0.1), "seconds")
    syns = [syn["address"] for syn in network.syns(hosts[1])]
    check(len(syns) <= 4 and all(syns.count(address) <= 2 for address in syns), f"SYNs to {syns}")


for program in RACERS:
    REGISTRY[f"case_13_races_itself.{program}"] = Case(racer, ("v6-drop",), (program,))

# -- E: interposers and dup2; those that concern blocking programs --


def left_after_a_second(network, how, wanted):
    """EINTR after one second; SA_RESTART goes on; SO_SNDTIMEO ends it with EINPROGRESS, then EALREADY."""
    _, _, happy = hardening.compare(network, f"case 70: {how}", lambda host: victim("left", how, 1000, host.name, 7),
                                    slack_s=0.6)
    check_equal(hardening.said(happy, "connect"), wanted, "connect()")


for how, wanted in (("eintr", "EINTR"), ("restart", "ETIMEDOUT"), ("sndtimeo", "EINPROGRESS")):
    REGISTRY[f"case_70_{how}"] = Case(left_after_a_second, ("all-dead",), (how, wanted), load=LIGHT,
                                      lab_options=ONE_RETRY)


@case("v6-drop")
def case_71_ssh_closes_every_descriptor(network):
    """ssh begins with close_range(3, ~0)."""
    connected(network, lambda host: [*SSH, host.name, "true"], 0.5, status=255)


@case("v6-drop")
def case_71_python_subprocess(network):
    """A child with close_fds, started by a process that has raced already."""
    script = LOOP + "import subprocess; s.close()\n" \
                    "print(subprocess.run([sys.executable, '-c', sys.argv[3], *sys.argv[1:]], close_fds=True).returncode)"
    inner = LOOP + "s.send(b'x'); s.recv(1)"
    host, run = connected(network, lambda host: ["/usr/bin/python3", "-c", script, host.name, "7", inner], 0.8, count=2)
    check_equal(run.output, "0\n", f"child's status ({families(network.syns(host))})")


@case("v6-drop")
def fault_handlers_do_not_hinder(network):
    """Crash reporters leave every signal open, on a signal stack; beside them are handlers with SA_RESTART, and without."""
    script = "import signal; signal.signal(signal.SIGTERM, print); signal.siginterrupt(signal.SIGTERM, False)\n" \
             f"{LOOP}s.send(b'x'); s.recv(1)"
    connected(network, lambda host: ["/usr/bin/python3", "-X", "faulthandler", "-c", script, host.name, "7"], 0.8)


@case("v6-drop")
def case_71_shell_closes_numbers(network):
    """A shell that closes 3 to 20, then connects."""
    closes = " ".join(f"{number}>&-" for number in range(3, 21))
    connected(network, lambda host: ["bash", "-c", f"exec {closes}; exec 3<>/dev/tcp/{host.name}/7; echo x >&3; head -c1 <&3"],
              0.5)


@case("v6-drop", **ONE_RETRY)
def case_72_nothing_leaks_across_exec(network):
    """What a program finds open is what it finds open bare."""
    walk = " ".join(victim("walk", "NAME", 7))
    script = f"ls -l /proc/self/fd | wc -l; {walk} >/dev/null; exec ls /proc/self/fd"
    hardening.compare(network, "case 72: fds after exec", lambda host: ["sh", "-c", script.replace("NAME", host.name)],
                      sooner=True)


@case("v6-reset")
def case_72_reexec_loop(network):
    """A program that connects and executes itself again, a hundred times, has gathered nothing."""
    hosts, _, _ = hardening.compare(network, "case 72: a hundred times connect and exec",
                                    lambda host: victim("forks", "reexec", host.name, 7, 100), slack_s=10)
    check_equal(len(network.accepts(hosts[1])), 101, "connections")


OPTIONS = "keepalive,keepidle=33,nodelay,sndbuf=40000,rcvbuf=50000,tos=0x10,setsockopt=1:36:7,so-bindtodevice=c0,mss=1000," \
          "linger=5"
FIELDS = (r"keepalive,3[0-9]", "fwmark:0x7", "%c0", "rb100000", "tb80000", r"advmss:9[0-9]+")


def options_survive(network, version, family, peer_family):
    """What was set before connect() is there after it, whoever won."""
    host = network.host("case")
    program = network.start(["socat", "-u", "-", f"{version}:{host.name}:7,{OPTIONS}"], happy=True, stdin=None)
    network.wait_for(lambda: [a for a in network.find("accept") if a["address"] in host.addresses()], 5)
    peer = network.accepts(host)[0]["address"]
    shown = network.run(["ss", "-tnoemi", "dst", f"[{peer}]" if ":" in peer else peer]).output
    program.wait(0.1)
    check_equal(families(network.accepts(host)), peer_family, f"connection ({family})")
    for field in FIELDS:
        check(re.search(field, shown), f"no {field} in {shown}")


for fault, versions in (("healthy", {"TCP4": "4", "TCP6": "6", "TCP": "46"}), ("v6-drop", {"TCP4": "4", "TCP": "4"}),
                        ("v4-drop", {"TCP6": "6", "TCP": "6"})):
    for version, wanted in versions.items():
        for one in wanted[:1]:
            REGISTRY[f"case_76_options_survive_{fault.replace('-', '_')}.{version}"] = Case(
                options_survive, (fault,), (version, wanted, one))

ONLY_TCP = """
import socket, struct, sys
def attempt(text, function):
    try: print(text, function())
    except OSError as error: print(text, error.errno)
name = sys.argv[1]
addresses = [a[4][0] for a in socket.getaddrinfo(name, 53, type=socket.SOCK_STREAM)]
for address in addresses:
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
    attempt('udp', lambda: s.connect((address, 53)))
    attempt('udp source', lambda: s.getsockname()[0])
    attempt('udp again', lambda: s.connect((address, 54)))
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def raw(fd, data, length):
    ctypes.set_errno(0)
    return libc.connect(fd, data, length), ctypes.get_errno()
u = socket.socket(socket.AF_UNIX)
print('abstract', raw(u.fileno(), b'\\x01\\x00\\x00x', 4), raw(u.fileno(), b'\\x01\\x00a', 3), raw(u.fileno(), None, 0))
t = socket.socket(socket.AF_INET)
print('unspec', raw(t.fileno(), bytes(16), 16), raw(t.fileno(), bytes(2), 2), raw(t.fileno(), b'\\x02\\x00\\x00', 3))
print('bad fd', raw(-1, b'\\x02\\x00' + bytes(14), 16), raw(999, b'\\x02\\x00' + bytes(14), 16), raw(0, b'\\x02\\x00' + bytes(14), 16))
n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
attempt('netlink', lambda: n.connect((0, 0)))
r = socket.socket(socket.AF_INET, socket.SOCK_RAW, 17)
attempt('raw', lambda: r.connect((addresses[-1], 0)))
mixed = socket.socket(socket.AF_INET6)
mixed.settimeout(None)
four = socket.inet_aton(addresses[-1])
print('v4 on v6', raw(mixed.fileno(), struct.pack('=HH4s8s', socket.AF_INET, socket.htons(7), four, b''), 16))
"""


@case()
def case_78_only_tcp_connects_are_touched(network):
    """UDP, AF_UNIX, netlink, AF_UNSPEC, raw, wrong lengths: the same, and no TCP packet."""
    hosts, _, _ = hardening.compare(network, "case 78: connects that are not TCP",
                                    lambda host: ["/usr/bin/python3", "-c", ONLY_TCP, host.name])
    check_equal(network.syns(hosts[1]), [], "SYNs")


@case("v6-drop")
def case_81_existing_preload_is_kept(network):
    """happy-run puts the library beside others."""
    run = network.run(["sh", "-c", 'echo "$LD_PRELOAD"'], happy=True, by_happy_run=True, trace=False,
                      environment={"LD_PRELOAD": "libjemalloc.so.2"})
    check(re.fullmatch(r"\S+/libhappy\.so:libjemalloc\.so\.2\n", run.output), run.output)


@case("v6-drop", **ONE_RETRY)
def case_81_child_without_preload(network):
    """env -u LD_PRELOAD switches it off for a child."""
    _, run = connected(network, lambda host: ["env", "-u", "LD_PRELOAD", *victim("walk", host.name, 7)], 4, by_happy_run=True)
    check(run.seconds() > 2.5, "it was raced")


@case("v6-drop")
def case_81_file_capabilities(network):
    """ping has file capabilities: it runs unchanged, without a word on stderr."""
    bare, happy = (network.run(["ping", "-c1", "-n", "127.0.0.1"], by_happy_run=helped, happy=helped) for helped in (False, True))

    def words(text):
        return re.sub(r"[\d./]+", "", text).split()

    check_equal((happy.status, words(happy.output)), (bare.status, words(bare.output)), "status and output")


TIMED_NC = ["bash", "-c", "TIMEFORMAT='%3U %3S'; time nc -z $0 7 2>/dev/null"]


def many_runs(network, records, family):
    """Runs of nc in a healthy network: little is added, one SYN each, no step of 25, 50 or 250 ms. What is added is the
    processor's time, which other programs do not prolong."""
    hosts = [network.host(label, addresses=addresses) for label, addresses in zip(("bare", "happy"), records)]
    walls, processor = ([], []), ([], [])
    for _ in range(60):
        for host, *kept in zip(hosts, walls, processor):
            run = network.run([*TIMED_NC, host.name], happy=host is hosts[1], trace=False)
            check_equal(run.status, 0, "exit status")
            kept[0].append(run.seconds() * 1000)
            kept[1].append(sum(map(float, run.output.split())) * 1000)
    check_between(statistics.median(processor[1]) - statistics.median(processor[0]), -5, 6, "ms of processor added in the median")
    for place, most_ms in ((0, 20), (1, 20), (2, 60)):
        bare, happy = (statistics.quantiles(times, n=4)[place] for times in walls)
        check_between(happy - bare, -1000, most_ms, f"ms added in quartile {place + 1}")
    check_equal(families(network.syns(hosts[1])), family * 60, "SYNs")


for label, records, family in (("v4only", (["198.51.100.77"], ["198.51.100.78"]), "4"),
                               ("v6only", (["2001:db8:2::77"], ["2001:db8:2::78"]), "6"), ("dual", (None, None), "6")):
    REGISTRY[f"case_82_overhead.{label}"] = Case(many_runs, (), (records, family), seconds=60)
