"""Programs that close everything, fork, become others, in the middle of a race."""

import hardening
from cases import LIGHT, REGISTRY, Case, case, check, check_between, check_equal, victim

ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}  # one dead address takes 3 s
SOON_S = 1.8  # an attempt delay, the slow address's 0.6 s, and as much again for the echo


def close_everything(network, when, how):
    """Descriptors closed and their numbers reused: no byte on a wrong fd, and the next race is run."""
    def command(host):
        return victim("closer", when, how, host.name, 7)

    item = f"everything closed: {when}, {how}"
    # Closing costs this race only: it may end as bare, or connect.
    _, bare, happy = hardening.compare(network, item, command, sooner=True)
    allowed = ("connected", hardening.said(bare, "at_connect"))
    check(hardening.said(happy, "at_connect") in allowed, f"connect: {hardening.said(happy, 'at_connect')}")
    if hardening.said(happy, "at_connect") == "connected":
        check(hardening.said(happy, "at_echo") in ("1", None), "connected to nothing")
    check_between(float(hardening.said(happy, "afterwards_ms")) / 1000, 0, SOON_S, "seconds of the next connect")


def close_in_lookup(network, how):
    """glibc, whose sockets are closed under it, writes its queries into the program's own files; libhappy does not."""
    _, bare, happy = hardening.run_both(network, lambda host: victim("closer", "lookup", how, host.name, 7), seconds=30)

    def harm(run):
        return [hardening.said(run, key) for key in ("own_lost", "own_bytes_from_nowhere", "own_pairs_dead")]

    passed = happy.status == bare.status == 0 and harm(happy) == ["0", "0", "0"] and \
        hardening.said(happy, "afterwards") == "echo"
    hardening.tell(f"everything closed: lookup, {how}",
                   *(f"own files lost, bytes, dead: {', '.join(harm(run))}" for run in (bare, happy)), passed)
    check(passed, f"bare {bare.output}, with libhappy {happy.output}")


for how in ("close_range", "closefrom", "close"):
    REGISTRY[f"close_lookup_{how}"] = Case(close_in_lookup, ("v6-drop", "aaaa-late=800", "a-late=800"), (how,),
                                           load=LIGHT, lab_options=ONE_RETRY)
for when, faults in (("before", ("v6-drop",)), ("idle", ("v6-drop",)), ("race", ("v6-drop", "v4-slow=600")),
                     ("race-all", ("v6-drop", "v4-slow=600"))):
    for how in ("close_range", "closefrom", "close"):
        REGISTRY[f"close_{when.replace('-', '_')}_{how}"] = Case(close_everything, faults, (when, how),
                                                                  load=LIGHT, lab_options=ONE_RETRY)


def forks(network, what, text, **options):
    """The victim of that name."""
    return hardening.compare(network, text, lambda host: victim("forks", what, host.name, 7), **options)


@case("v6-drop", "v4-slow=300", load=LIGHT, **ONE_RETRY)
def fork_from_another_thread(network):
    """Children of a process in mid-race have nothing of it, and race themselves."""
    forks(network, "other", "fork in mid-race", sooner=True)


@case("v6-drop", "v4-slow=600", load=LIGHT, **ONE_RETRY)
def fork_from_the_same_thread(network):
    """fork() in a handler that interrupts connect()."""
    forks(network, "same", "fork in a handler, EINTR")


@case("all-dead", load=LIGHT, **ONE_RETRY)
def fork_from_the_same_thread_restarting(network):
    """The handler has SA_RESTART: both go on with the same socket."""
    forks(network, "same-restart", "fork in a handler, SA_RESTART", slack_s=0.6)


@case("v6-drop", "v4-slow=900", load=LIGHT, **ONE_RETRY)
def exec_in_mid_race(network):
    """The new program has no fd, no thread; the network hears no more."""
    hosts, _, happy = forks(network, "exec", "exec in mid-race")
    hardening.check_quiet_after(network, hosts[1], happy.ended_ms)


@case("v6-drop", "v4-slow=300", load=LIGHT, **ONE_RETRY)
def fork_and_exec_in_mid_race(network):
    """What a child that executes something inherits."""
    forks(network, "exec-child", "fork and exec in mid-race", sooner=True)


@case("v6-drop", "v4-slow=600", load=LIGHT, **ONE_RETRY)
def vfork_in_mid_race(network):
    """Children that run hooks in the parent's memory do not disturb its race."""
    forks(network, "vfork", "vfork children that connect and close", sooner=True)


@case("v6-drop", "v4-slow=600", load=LIGHT, **ONE_RETRY)
def spawn_in_mid_race(network):
    """posix_spawn."""
    forks(network, "spawn", "posix_spawn in mid-race", sooner=True)


@case("v6-drop", load=LIGHT, **ONE_RETRY)
def daemon_after_lookup(network):
    """daemon() between lookup and connect."""
    hosts, _, _ = forks(network, "daemon", "daemon() between lookup and connect")
    results = []
    for host in hosts:
        path = network.folder.__class__(f"/run/lab/daemon-{host.name}")
        network.run(["sh", "-c", f"while ! [ -s {path} ]; do sleep 0.05; done"], seconds=8)
        results.append(path.read_text(encoding="ascii"))
    check_equal(results[1], results[0], "what the daemon saw")


@case("v6-drop", load=LIGHT, **ONE_RETRY)
def fork_after_races(network):
    """A program without threads has none after a race either when it forks: Python 3.12 warns of them."""
    script = """
import os, re, socket, sys
for _ in range(3):
    socket.create_connection((sys.argv[1], 7))
    child = os.fork()
    if not child:
        os._exit(0)
    print(re.findall('Threads:.*', open('/proc/self/status').read()), os.waitpid(child, 0)[1])
"""
    hardening.compare(network, "fork after races", lambda host: ["/usr/bin/python3", "-c", script, host.name], sooner=True)


@case("v6-drop", "v4-slow=600", **ONE_RETRY)
def python_subprocess_in_mid_race(network):
    """vfork by Python, whose children close descriptors in the parent's memory."""
    script = """
import socket, subprocess, sys, threading, time
def connect():
    s = socket.create_connection((sys.argv[1], 7)); s.send(b'x'); results.append(s.recv(1))
results = []
socket.getaddrinfo(sys.argv[1], 7, type=socket.SOCK_STREAM)
thread = threading.Thread(target=connect); thread.start()
for _ in range(20):
    print(subprocess.run(['sh', '-c', 'echo /proc/self/fd/*'], close_fds=True, capture_output=True).stdout)
    time.sleep(0.04)
thread.join()
print(results)
"""
    hardening.compare(network, "python's subprocess in mid-race",
                      lambda host: ["/usr/bin/python3", "-c", script, host.name], sooner=True)
