"""What a program can ask of a socket that is connecting, and what becomes of it when the program drops it."""

import os

import hardening
from cases import REGISTRY, Case, case, check, check_equal, families, victim

ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}  # a dead address takes 3 s


def lines_of(run, *beginnings):
    """The lines of a victim's report that begin so."""
    return [line for line in run.output.splitlines() if line.startswith(beginnings)]


def pending_socket_answers_as_the_kernel(network):
    """While it is pending, before and while hidden attempts run: connect() again, names, options, send, recv."""
    host, reference = network.host("happy"), network.host("bare")
    live = network.host("live", addresses=["198.51.100.120"])
    runs = [network.start(victim("asks", "all", name.name, 25), happy=name is host, trace=hardening.TRACE)
            for name in (host, reference, live)]
    happy, bare, connected = (program.wait(10) for program in runs)
    check_equal(lines_of(happy, "first", "at-"), lines_of(bare, "first", "at-"), "while pending")
    wanted = [line.replace("length 28", "length 16") for line in lines_of(connected, "outcome", "peer", "flags", "blocked")]
    check_equal(lines_of(happy, "outcome", "peer", "flags", "blocked"), wanted, "after")
    check_equal(lines_of(happy, "connect"), ["connect 0 EISCONN"], "connect() after")
    check_equal(lines_of(happy, "fds_more", "threads_more"), ["fds_more 0", "threads_more 0"], "left over")


def connect_again_tells_of_success(network):
    """EINPROGRESS, EALREADY, 0 once, EISCONN: as a program expects that learns the outcome by connect() alone."""
    host, live = network.host("happy"), network.host("live", addresses=["198.51.100.120"])
    happy, bare = (network.run(victim("asks", "repeated", name.name, 25), happy=name is host, trace=hardening.TRACE)
                   for name in (host, live))
    check_equal(happy.output, bare.output, "sequence")


def connect_again_tells_of_failure(network):
    """EINPROGRESS, EALREADY, ECONNREFUSED, and a new attempt."""
    hardening.compare(network, "connect() again after a reset", lambda host: victim("asks", "repeated", host.name, 25),
                      slack_s=0.5)


def error_is_told_once(network):
    """Case 68: SO_ERROR is the kernel's, and 0 when read again; a race has read nothing of it away."""
    hardening.compare(network, "SO_ERROR, read thrice", lambda host: victim("asks", "error", host.name, 25), sooner=True,
                      slack_s=0.5)


# A late A answer: the program is handed IPv6 alone, and its socket is veiled.
for name, function, faults in (
        ("pending_socket_answers_as_the_kernel", pending_socket_answers_as_the_kernel, ("first-address-dead",)),
        ("connect_again_tells_of_success", connect_again_tells_of_success, ("v6-drop",)),
        ("connect_again_tells_of_failure", connect_again_tells_of_failure, ("all-reset",)),
        ("error_is_told_once", error_is_told_once, ("all-reset",))):
    REGISTRY[name] = Case(function, faults, lab_options=ONE_RETRY)
    REGISTRY[f"{name}.veiled"] = Case(function, (*faults, "a-late=150"), lab_options=ONE_RETRY)
REGISTRY["error_is_told_once.timeout"] = Case(error_is_told_once, ("all-dead",), lab_options=ONE_RETRY)
REGISTRY["connect_again_tells_of_success.veiled_refusal"] = Case(connect_again_tells_of_success, ("v6-reset", "a-late=150"))


@case()
def healthy_non_blocking_connect_makes_no_thread(network):
    """Not even while it waits, and nothing is left; one SYN each."""
    hosts, _, happy = hardening.compare(network, "healthy non-blocking connect",
                                        lambda host: victim("asks", "healthy", host.name, 25))
    check_equal(lines_of(happy, "threads"), ["threads 1", "threads_more 0"], "threads")
    check_equal(families(network.syns(hosts[1])), "6", "SYNs")


HOWS = ("close", "dup2", "dup3", "close_range", "closefrom", "fclose", "syscall-close", "syscall-dup2", "syscall-dup3",
        "syscall-close_range")


def dropped(network, ms, threads):
    """Whichever way: no SYN afterwards, nothing arrives on what has the number then, nothing is left."""
    failures = []
    started = [(how, host, network.start(victim("drops", how, ms, threads, host.name, 25), happy=True, trace=hardening.TRACE))
               for how in HOWS for host in [network.host(how)]]
    for how, host, program in started:
        run = program.wait(25)
        said = [line for line in run.output.splitlines() if not line.startswith(("at_", "blocked_"))]
        if run.status != 0 or said != ["bytes_from_nowhere 0", "own_file works", "fds_more 0", "threads_more 0"]:
            failures.append(f"{how}: status {run.status}, {run.output!r}")
            continue
        dropped_ms = float(hardening.said(run, "at_dropped"))
        late = [syn["address"] for syn in network.syns(host) if syn["time_ms"] > dropped_ms + 30]
        if late:
            failures.append(f"{how}: SYNs afterwards to {late}")
    check(not failures, "; ".join(failures))


for number in (1, 2):
    for moment in (100, 400, 600):  # before, and between, the hidden attempts
        REGISTRY[f"dropped_in_mid_race.{moment}.{number}"] = Case(dropped, ("first-address-dead",), (moment, number),
                                                                  seconds=60, lab_options=ONE_RETRY)
# With one thread the late answer's socket stays until the next lookup.
REGISTRY["dropped_in_mid_race.veiled"] = Case(dropped, ("first-address-dead", "a-late=900"), (100, 2), seconds=60,
                                              lab_options=ONE_RETRY)

SETS_OPTIONS = """
import ctypes, select, socket, sys
family, kind, proto, _, where = socket.getaddrinfo(sys.argv[1], 7, type=socket.SOCK_STREAM)[0]
s = socket.socket(family, kind | socket.SOCK_NONBLOCK, proto)
s.connect_ex(where)
select.select([], [s], [], 0.4)
one, number = ctypes.c_int(1), ctypes.c_int(77)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
ctypes.CDLL(None).syscall(SYS_SETSOCKOPT, s.fileno(), socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, ctypes.byref(number), 4)
select.select([], [s], [], 5)
print(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), s.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE))
s.setblocking(True)
print(s.getpeername()[0], s.send(b'x'), s.recv(1))
"""


@case("v6-drop", "v4-slow=400")
def option_set_while_hidden_attempts_run(network):
    """The winner was made before, and has it all the same."""
    number = {"x86_64": 54, "aarch64": 208}[os.uname().machine]
    host = network.host("happy")
    run = network.run(["/usr/bin/python3", "-c", SETS_OPTIONS.replace("SYS_SETSOCKOPT", str(number)), host.name], happy=True)
    check_equal(run.output, f"1 77\n{host.ipv4[0]} 1 b'x'\n", "options, peer and echo")
