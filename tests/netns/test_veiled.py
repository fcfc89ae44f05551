"""A program that was handed one family's addresses alone, because the other family's answer was late, has no address to go
on with: its non-blocking connect() must not fail while another address of the name can connect."""

import errno
import json

import hardening
from cases import REGISTRY, Case, case, check, check_between, check_connected, check_equal, families, victim
from test_cases_de import ASYNCIO, NODE, REQUEST, python

LATE_MS = 150  # far more than the 25 ms that a lookup waits for the second family
PROGRAMS = {
    "nc": (lambda host: ["nc", host.name, "80"], REQUEST, None),
    "curl": (lambda host: ["curl", "-s", f"http://{host.name}/"], b"", None),
    "asyncio": (lambda host: python(ASYNCIO, host.name), b"", None),
    "node": (lambda host: ["node", "--no-network-family-autoselection", "-e", NODE, host.name], b"", None),
    "node-io_uring": (lambda host: ["node", "--no-network-family-autoselection", "-e", NODE, host.name], b"",
                      {"UV_USE_IO_URING": "1"}),
    "ruby": (lambda host: ["ruby", "-e", f"require 'net/http'; print Net::HTTP.get('{host.name}', '/')"], b"", None),
    "php": (lambda host: ["php", "-r", f"exit(file_get_contents('http://{host.name}/') === false ? 1 : 0);"], b"", None),
}
FAULTS = {"reset": "v6-reset", "unreachable": "v6-unreachable", "prohibited": "v6-prohibited", "noroute": "v6-noroute",
          "unreachable-route": "v6-unreachable-route"}


def late_family_wins(network, command, stdin, environment):
    """IPv6 fails at once, the A answer is late: connected over IPv4 as soon as it is there."""
    host = network.host("late")
    run = network.run(command(host), happy=True, stdin=stdin, environment=environment)
    check_equal(run.status, 0, f"exit status (output {run.output.strip()[-300:]!r})")
    check_connected(network, host, run, "4", LATE_MS / 1000 + 0.6)
    check(families(network.syns(host)) in ("64", "4"), f"SYNs {network.syns(host)}")


for program, arguments in PROGRAMS.items():
    REGISTRY[f"late_family_wins.{program}"] = Case(late_family_wins, ("v6-reset", f"a-late={LATE_MS}"), arguments)
for label, fault in FAULTS.items():
    REGISTRY[f"late_family_wins_when.{label}"] = Case(late_family_wins, (fault, f"a-late={LATE_MS}"), PROGRAMS["nc"])


def healthy_with_late_family(network, command, stdin, environment):
    """Nothing is wrong but that the A answer is late: IPv6, one SYN, and no wait."""
    host = network.host("late")
    run = network.run(command(host), happy=True, stdin=stdin, environment=environment)
    check_equal(run.status, 0, f"exit status (output {run.output.strip()[-300:]!r})")
    check_connected(network, host, run, "6", 0.7)
    check_equal(families(network.syns(host)), "6", "SYNs")


for program, arguments in PROGRAMS.items():
    REGISTRY[f"healthy_with_late_family.{program}"] = Case(healthy_with_late_family, (f"a-late={LATE_MS}",), arguments)


@case("v4-reset", "aaaa-late=150")
def late_ipv6_wins_unseen(network):
    """The same with the families exchanged."""
    host = network.host("late")
    run = network.run(["nc", host.name, "80"], happy=True, stdin=REQUEST)
    check_equal(run.status, 0, f"exit status ({run.output!r})")
    check_connected(network, host, run, "6", 0.7)


@case("v6-reset")
def late_answer_without_addresses(network):
    """The late answer says that there is no IPv4 address: the refusal is shown then; a lost answer is waited for 5 s."""
    for label, rule, low_s, high_s in (("empty", {"action": "nodata", "delay_ms": LATE_MS}, LATE_MS / 1000, 0.8),
                                       ("lost", {"action": "drop"}, 4.5, 6)):
        host = network.host(label)
        network.set_record(host.name, "A", records=[], **rule)
        run = network.run(victim("waiting", "poll-out", 1, host.name, 25), happy=True)
        check_equal(run.output.splitlines()[0], "1c so_error ECONNREFUSED", label)
        check_between(run.seconds(), low_s, high_s, f"seconds, {label}")
        check_equal(families(network.syns(host)), "6", f"SYNs, {label}")


LATER = """
import os, select, socket, sys, time
family, kind, proto, _, where = socket.getaddrinfo(sys.argv[1], 7, type=socket.SOCK_STREAM)[0]
time.sleep(float(sys.argv[2]))
s = socket.socket(family, kind | socket.SOCK_NONBLOCK, proto)
s.connect_ex(where)
if sys.argv[3] == 'fork' and os.fork() == 0:
    time.sleep(3)
    os._exit(0)
def told():
    select.select([], [s], [], 5)
    try:
        return s.getpeername()
    except OSError:
        return None
told()
print(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), s.getpeername()[0])
s.setblocking(True)
s.send(b'x'), s.recv(1)
"""


@case("v6-reset", f"a-late={LATE_MS}")
def answer_between_lookup_and_connect(network):
    """The A answer came when the program had its list already, and had not connected yet."""
    host = network.host("late")
    run = network.run(python(LATER, host.name, "0.5", "alone"), happy=True)
    check_equal(run.output, f"0 {host.ipv4[0]}\n", "error and peer")


@case("v6-slow=400", "a-late=150", "v4-drop")
def child_holds_the_veiled_socket(network):
    """A child made meanwhile holds the socket too, so that it cannot be replaced: it connects by itself after all, and
    who waits for it does not notice the change."""
    host = network.host("late")
    program = network.start(python(LATER, host.name, "0", "fork"), happy=True)
    said = program.wait(10).output.splitlines()[-1:]  # before, Python 3.12 warns of the thread that runs the race
    check_equal(said, [f"0 {host.ipv6[0]}"], "error and peer")
    trace = map(json.loads, program.trace.read_text(encoding="ascii").splitlines())
    said = [line["reason"] for line in trace if line["event"] == "abandoned"]
    check_equal(said, ["the fd cannot be replaced"], "reasons in the trace")


SHUTS_DOWN = """
import select, socket, sys, time
family, kind, proto, _, where = socket.getaddrinfo(sys.argv[1], 7, type=socket.SOCK_STREAM)[0]
s = socket.socket(family, kind | socket.SOCK_NONBLOCK, proto)
s.connect_ex(where)
s.shutdown(socket.SHUT_RDWR)
time.sleep(float(sys.argv[2]))
print(s.connect_ex(where), select.select([], [s], [], 3)[1] == [s])
print(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
s.setblocking(True)
print(s.send(b'x'), s.recv(1))
"""


@case("v6-slow=200", "a-late=600")
def shut_down_and_connected_again(network):
    """The program ends the attempt itself, and makes another with the same socket: at once, or when that was noticed."""
    for pause_s in (0, 0.1):
        hardening.compare(network, f"shut down and connected again after {pause_s} s",
                          lambda host, s=pause_s: python(SHUTS_DOWN, host.name, str(s)), slack_s=1)


LEAVING = ("execv", "execve", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat", "syscall-execve",
           "failed-exec", "exec-cloexec", "vfork", "sendmsg", "sendmmsg", "syscall-sendmsg")
AT_ONCE = 8


def leaves_with_another_program(network, ways):
    """A program that gets the socket by exec() or as a message's descriptor has one that connects."""
    for begin in range(0, len(ways), AT_ONCE):
        started = []
        for way in ways[begin:begin + AT_ONCE]:
            hosts = [network.host(f"{way}-{label}") for label in ("bare", "happy")]
            started.append((way, hosts, [network.start(victim("leaves", way, host.name, 7), happy=host is hosts[1],
                                                       trace=hardening.TRACE) for host in hosts]))
        for way, hosts, programs in started:
            hardening.judge(f"leaves by {way}", hosts, *(program.wait(10) for program in programs), slack_s=1)


REGISTRY["leaves_with_another_program.veiled"] = Case(leaves_with_another_program, ("v6-slow=300", "a-late=600"), (LEAVING,))
REGISTRY["leaves_with_another_program.raced"] = Case(leaves_with_another_program, ("v6-slow=500",),
                                                     (("execv", "sendmsg-kept", "sendmmsg-kept"),))


def veil_and_trouble(network, status):
    """What fails inside libhappy leaves the program with its own attempt."""
    for trouble in ("fail:dup3", "fail:thread", "fail:proc"):
        host = network.host(trouble.replace("fail:", ""))
        run = network.run(["nc", host.name, "80"], happy=True, stdin=REQUEST, environment={"HAPPY_FORCE": trouble})
        wanted = 0 if trouble == "fail:proc" else status
        check_equal(run.status, wanted, f"{trouble}: exit status ({run.output!r})")
        check(network.syns(host), f"{trouble}: no attempt ({run.output!r})")
        check_between(run.seconds(), 0, 1, f"{trouble}: seconds")


for names, ends in ((("a-late=150",), 0), (("v6-reset", "a-late=150"), 1)):
    REGISTRY[f"veil_and_trouble.{names[0]}"] = Case(veil_and_trouble, names, (ends,))

NO_WORKER = {"HAPPY_FORCE": "fail:thread"}


@case("v6-drop", f"a-late={LATE_MS}")
def without_worker_raced_unveiled(network):
    """No thread can be made: the program's own waiting calls move its race on, late answers included."""
    for style in ("poll-out", "poll-in-handler", "epoll-level"):
        host = network.host(style)
        run = network.run(victim("waiting", style, 1, host.name, 25), happy=True, environment=NO_WORKER)
        check_equal(run.status, 0, f"{style}: exit status ({run.output!r})")
        check_between(run.seconds(), 0, 2, f"{style}: seconds")
        check_equal([syn["address"] for syn in network.syns(host)], host.addresses(), f"{style}: SYNs")


@case("v6-noroute", f"a-late={LATE_MS}")
def without_worker_as_bare(network):
    """What connect() of such a socket says is the kernel's own answer."""
    run = network.run(victim("waiting", "poll-out", 1, network.host("case").name, 25), happy=True, environment=NO_WORKER)
    check(run.output.startswith(f"connect {errno.ENETUNREACH}"), run.output)
