"""What has been wrong once: found by reviews, each with the network it showed in. All are compared with bare."""

import concurrent.futures
import pathlib
import threading
import time

import hardening
import lab
import odd_dns_server
import topology
from cases import LIGHT, REGISTRY, Case, case, check, check_between, check_equal, victim

ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}  # one dead address takes 3 s
PATIENT = {"HAPPY_RESOLUTION_DELAY_MS": "1000"}  # so that a busy machine's late answer is not left out


def same_end(network, what, after_ms, options, connects=0):
    """The victims `ends` and `mallocs`, compared."""
    program = "mallocs" if "memory" in what or what.startswith(("datagram-handler", "busy-handler")) else "ends"
    _, _, happy = hardening.compare(network, f"{what} after {after_ms} ms",
                                    lambda host: victim(program, what, after_ms, host.name, 7), **options)
    check(int(hardening.said(happy, "at_succeeded") or 0) >= connects, f"it was not raced: {happy.output}")
    check(what not in ("jump-exit", "jump-exit-threads", "main-exit") or happy.seconds() < 2, "the process stayed")


SOONER = {"sooner": True}
DEAD, V6_DEAD, SLOW = ("all-dead",), ("v6-drop",), ("v6-reset", "v6-slow=800")
for what, after_ms, label, faults, options in (
        ("jump-exit", 1000, "dead", DEAD, {}), ("jump-exit-threads", 1000, "dead", DEAD, {}),
        ("jump-exit", 120, "dead", DEAD, {}), ("jump-exit-threads", 400, "dead", DEAD, {}),
        ("main-exit", 0, "v6", V6_DEAD, SOONER), ("main-exit", 0, "slow", SLOW, SOONER),
        ("slow-handler", 100, "v6", V6_DEAD, SOONER), ("slow-handler", 400, "slow", SLOW, SOONER),
        ("slow-handler", 100, "dead", DEAD, {"slack_s": 2.5}),  # the others begin when the handler has returned
        ("shutdown", 100, "dead", DEAD, {}), ("shutdown", 255, "dead", DEAD, {}), ("shutdown", 600, "dead", DEAD, {}),
        ("shutdown", 100, "v6", V6_DEAD, {}),
        ("datagram-handler", 50, "v6", ("v6-reset",), {}),
        ("jump-lookup", 100, "silent", ("aaaa-silent", "a-silent"), {"slack_s": 1}),
        ("no-memory", 0, "v6", V6_DEAD, SOONER), ("no-memory-once", 0, "v6", V6_DEAD, SOONER)):
    REGISTRY[f"again_{what.replace('-', '_')}_{after_ms}ms_{label}"] = Case(
        same_end, faults, (what, after_ms, options), load=LIGHT, lab_options=ONE_RETRY)

BUSY = {"sooner": True, "slack_s": 3}  # thirty races, where bare has thirty refusals
# In a handler that has interrupted malloc() nothing may be allocated; it is raced all the same.
for how in ("", "-threads", "-poll", "-threads-poll", "-stack", "-stack-disarmed", "-blocked"):
    for label, fault, connects in (("reset", "all-reset", 0), ("v6", "v6-reset", 1), ("drop", "v6-drop", 1)):
        if how == "-stack-disarmed" and label == "drop":
            continue
        if "stack" in how or ("poll" in how and label == "v6"):
            connects = 0  # no room for a race; the program sees the refusal of a socket that does not block
        REGISTRY[f"again_busy_handler{how.replace('-', '_')}_{label}"] = Case(
            same_end, (fault,), (f"busy-handler{how}", 60, BUSY, connects), load=LIGHT, lab_options=ONE_RETRY)

# -- sockets --


def same_socket(network, what, options):
    """The victim `sockets`, compared."""
    hardening.compare(network, f"sockets: {what}", lambda host: victim("sockets", what, host.name, 7), **options)


for what in ("alias", "family", "threads"):
    for label, faults in (("slow", ("v6-slow=400",)), ("v6", V6_DEAD), ("dead", DEAD), ("healthy", ())):
        if what in ("alias", "threads") and label == "v6":
            continue  # what is moved connects, where bare does not: see the next case
        REGISTRY[f"again_{what}_{label}"] = Case(same_socket, faults, (what, {"slack_s": 0.6}), load=LIGHT,
                                                 lab_options=ONE_RETRY)


@case("v6-drop", load=LIGHT, **ONE_RETRY)
def again_alias_v6(network):
    """A socket with other names is moved together with them, or left alone."""
    _, _, happy = hardening.run_both(network, lambda host: victim("sockets", "alias", host.name, 7))
    moved = "connect connected\nsend_on_the_other ok\nepoll 1 0x4\nsame 1\n"
    left = "connect ETIMEDOUT\nsend_on_the_other EPIPE\nepoll 1 0x14\nsame 1\n"
    check(happy.status == 0 and happy.output in (moved, left), happy.output)


for label, faults in (("healthy", ()), ("reset", ("all-reset",)), ("noroute", ("v6-noroute", "v4-reset"))):
    REGISTRY[f"again_strange_{label}"] = Case(same_socket, faults, ("strange", SOONER), seconds=60, load=LIGHT,
                                              lab_options=ONE_RETRY)

# -- lookups --


def resolver_state(network, what, label):
    """What a program writes into _res is obeyed."""
    hardening.compare(network, f"_res: {what}, {label}", lambda host: victim("lookups", what, host.name), slack_s=0.6)


for what, label, faults in (("short", "silent", ("aaaa-silent", "a-silent")), ("nameserver", "dead", ("ns-dead",)),
                            ("short", "dead", ("ns-dead",)), ("nameserver", "healthy", ())):
    REGISTRY[f"again_state_{what}_{label}"] = Case(resolver_state, faults, (what, label), load=LIGHT)


def parked(network, what):
    """Late answers are waited for, but not for ever: no descriptor stays."""
    host = network.host("parked")
    run = network.run(victim("lookups", what, host.name), happy=True, trace=hardening.TRACE,
                      environment={"HAPPY_RESOLUTION_DELAY_MS": "50"}, seconds=15)
    check_equal((run.status, hardening.said(run, "threads_more")), (0, "0"), f"status, threads ({run.output})")
    check_between(int(hardening.said(run, "fds_more")), 0, 2, "fds of the last lookup")
    check_between(int(hardening.said(run, "at_once_fds_more")), 0, 100, "fds at once")


for what in ("parked", "parked-threads"):
    for label, faults in (("silent", ("aaaa-silent",)), ("late", ("aaaa-late=300",)), ("healthy", ())):
        REGISTRY[f"again_{what.replace('-', '_')}_{label}"] = Case(parked, faults, (what,), load=LIGHT)


def lost_query(network, rtt_ms):
    """The first A query is lost, and IPv6 refuses: the lookup asks again long before bare does."""
    def lose(host):
        network.set_record(host.name, "A", records=host.ipv4, action="drop")
        network.wait_for(lambda: network.find("query", name=host.name, type="A"), 10)
        time.sleep(0.1)
        network.set_record(host.name, "A", records=host.ipv4, delay_ms=rtt_ms)

    hosts = [network.host(label) for label in ("bare", "happy")]
    threads = [threading.Thread(target=lose, args=(host,)) for host in hosts]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    bare, happy = (network.start(victim("walk", host.name, 7), happy=host is hosts[1], trace=hardening.TRACE).wait(20)
                   for host in hosts)
    for thread in threads:
        thread.join()
    hardening.tell(f"first A query lost, {rtt_ms} ms to the nameserver", f"{bare.seconds():.1f} s",
                   f"{happy.seconds():.1f} s", happy.status == bare.status == 0)
    check_equal((bare.status, happy.status), (0, 0), f"status ({happy.output})")
    check_between(happy.seconds(), 0, 2, "seconds")


for rtt_ms in (0, 80):
    REGISTRY[f"again_lost_query_{rtt_ms}ms"] = Case(lost_query, ("v6-reset",), (rtt_ms,))


@case("v6-drop", "a-late=300")
def again_forty_threads_late_answer(network):
    """Forty threads, the working family's answer comes late: all of them get it."""
    host = network.host("forty")
    run = network.run(victim("lookups", "threads", host.name), happy=True, trace=hardening.TRACE)
    check_equal((run.status, hardening.said(run, "at_succeeded")), (0, "40"), f"status, successes ({run.output})")
    check_between(float(hardening.said(run, "all_ms")) / 1000, 0.3, 1.5, "seconds")
    check_equal((hardening.said(run, "fds_more"), hardening.said(run, "threads_more")), ("0", "0"), "leftovers")


@case()
def again_fork_while_loading(network):
    """fork() while another thread loads the engine, in thirty programs."""
    def command(host):
        program = " ".join(victim("lookups", "forking", host.name))
        return ["sh", "-c", f"for i in 1 2 3 4 5 6; do for j in 1 2 3 4 5; do {program} & done; wait; done | sort"]

    hardening.compare(network, "fork while the engine is loaded", command, slack_s=8)


ODD_NAMES = (
    "only4.test", "only6.test", "none.test", "target.test", "alias.test", "alias2.test", "loop.test", "to-nothing.test",
    "to-nowhere.test", "to-odd.test", "half.test", "many.test", "full.test", "duplicate.test", "special.test", "servfail6.test",
    "servfail.test", "nxdomain6.test", "refused4.test", "servfail4-none.test", "nxdomain4-none.test", "truncated.test",
    "under_score.test", "_service.test", "-dash.test", "dash-.test", "UPPER.Test", "upper.test.", "upper.test..", ".", "..",
    "", "a b.test", "xn--bcher-kva.test", "b\u00fccher.test", "1.2.3.4.5", "123.test", "nosuch.test", "nodots", "localhost",
    "a..test", ".test", "back\\.test", f"{'a' * 63}.test", f"{'a' * 64}.test", "a" * 300, ".".join(["a" * 49] * 5) + ".aaaa")


def odd_zone():
    """Records for those of ODD_NAMES that have any."""
    six, four = ["2001:db8:2::9"], ["198.51.100.9"]

    def records(aaaa, a, aaaa_action=None, a_action=None):
        rules = {"AAAA": {"records": aaaa}, "A": {"records": a}}
        for record_type, action in (("AAAA", aaaa_action), ("A", a_action)):
            if action:
                rules[record_type]["action"] = action
        return rules

    def alias(target):
        return {"CNAME": {"records": [target]}}

    zone = {name: records(six, four) for name in (
        "target.test", "under_score.test", "_service.test", "-dash.test", "dash-.test", "upper.test", "xn--bcher-kva.test",
        "1.2.3.4.5", "123.test", f"{'a' * 63}.test", "duplicate.test", "a b.test")}
    zone.update({
        "only4.test": records([], four), "only6.test": records(six, []), "none.test": records([], []),
        "alias.test": alias("target.test"), "alias2.test": alias("Alias.Test"), "loop.test": alias("loop2.test"),
        "loop2.test": alias("loop.test"), "to-nothing.test": alias("none.test"), "to-nowhere.test": alias("nx.test"),
        "to-odd.test": alias("a b.test"), "half.test": alias("only4.test"),
        "many.test": records([f"2001:db8:2::{n:x}" for n in range(1, 61)], [f"198.51.100.{n}" for n in range(1, 61)]),
        "full.test": records([f"2001:db8:2::{n:x}" for n in range(1, 49)], [f"198.51.100.{n}" for n in range(1, 49)]),
        "special.test": records(["::", "::1", "fe80::1", "ff02::1", *six],
                                ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "169.254.1.1", *four]),
        "servfail6.test": records(six, four, "servfail"), "nxdomain6.test": records(six, four, "nxdomain"),
        "servfail.test": records([], [], "servfail", "servfail"), "refused4.test": records(six, four, None, "refused"),
        "servfail4-none.test": records([], [], None, "servfail"), "truncated.test": records(six, four, None, "truncate"),
        "nxdomain4-none.test": records([], [], None, "nxdomain")})
    return zone


def check_same_lines(item, bare, happy):
    """Both outputs are equal line by line; those that are not are shown."""
    pairs = list(zip(bare.output.splitlines(), happy.output.splitlines()))
    differing = [pair for pair in pairs if pair[0] != pair[1]]
    equal = bare.status == happy.status == 0 and not differing and bare.output == happy.output
    hardening.tell(item, f"{len(pairs)} answers", f"{len(differing)} differ", equal)
    shown = "; ".join(f"{one[:160]!r}, bare {other[:160]!r}" for other, one in differing[:8])
    check(equal, f"{item}: {len(differing)} of {len(pairs)} differ (status {happy.status}, bare {bare.status}): {shown}")


@case(seconds=60)
def again_odd_names(network):
    """Names, numbers of records, aliases and codes of all kinds: getaddrinfo() says what it says bare."""
    for name, rules in odd_zone().items():
        for record_type, rule in rules.items():
            network.set_record(name, record_type, **rule)
    bare, happy = (network.start(victim("lookups", "all", *ODD_NAMES), happy=happy, trace=False,
                                 environment={"LANG": "C.UTF-8", **PATIENT}) for happy in (False, True))
    check_same_lines("odd names", bare.wait(50), happy.wait(50))


ODD_SERVER = "198.51.100.54"
STRICTER = {"other-class"}  # glibc takes such records for addresses
# glibc believes that these are the server's and gives up; libhappy waits for the real reply.
WAITED_OUT = {"six-bytes", "empty-datagram"}


@case(seconds=60)
def again_odd_replies(network):
    """Replies that are wrong, short, of another question, with odd codes: as bare."""
    topology.call("ip", "-n", "s", "addr", "add", f"{ODD_SERVER}/32", "dev", "lo")
    network.start_daemon("s", lab.PYTHON, "-ES", lab.HERE / "odd_dns_server.py", ODD_SERVER)
    network.wait_ready()
    pathlib.Path("/run/lab/resolv.conf").write_text(f"nameserver {ODD_SERVER}\noptions timeout:1 attempts:1\n", encoding="ascii")
    wrong = []

    def ask(kind):
        bare, happy = (network.start(victim("lookups", "all", f"{kind}.test"), happy=happy, trace=False, environment=PATIENT)
                       for happy in (False, True))
        bare, happy = bare.wait(20), happy.wait(20)
        equal = (bare.status, bare.output) == (happy.status, happy.output)
        hardening.tell(f"odd reply: {kind}", bare.output.partition("|80|")[2].splitlines()[0],
                       happy.output.partition("|80|")[2].splitlines()[0], equal)
        if not equal and kind not in STRICTER:
            wrong.append(f"{kind}: {happy.output!r}, bare {bare.output!r}")
        if happy.seconds() > bare.seconds() + (2.5 if kind in WAITED_OUT else 0.5):
            wrong.append(f"{kind}: {happy.seconds():.1f} s, bare {bare.seconds():.1f} s")

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(ask, odd_dns_server.KINDS))
    check(not wrong, "; ".join(wrong))


def combinations(network, without):
    """Every combination of getaddrinfo()'s hints, on a host that lacks a family."""
    if without:
        for device in ("c0", "lo"):
            topology.call("ip", "-n", "c", f"-{without}", "addr", "flush", "dev", device)
    if without == "4":  # DNS by IPv6
        pathlib.Path("/run/lab/resolv.conf").write_text(f"nameserver {topology.NAMESERVERS[1]}\n", encoding="ascii")
    host = network.host("name")
    # Of a host without IPv6 AAAA is asked only where there is no A (QUERY-2), unless lists have to be whole.
    settings = {**PATIENT, "HAPPY_PARTIAL": "0"} if without == "6" else PATIENT
    bare, happy = (network.start(victim("lookups", "combinations", host.name), happy=happy, trace=False,
                                 environment=settings) for happy in (False, True))
    check_same_lines(f"hints{f', no IPv{without}' if without else ''}", bare.wait(50), happy.wait(50))


for without in ("", "4", "6"):
    REGISTRY[f"again_hints{f'_without_v{without}' if without else ''}"] = Case(combinations, (), (without,), seconds=60)

# -- traces that cannot be written --


def traced_to(network, target):
    """A trace that nobody can take does not change the program."""
    def command(host):
        walk = f"{' '.join(victim('walk', host.name, 7))} | grep peer"
        # The program's own output is fd 3; its stderr ends in a pipe that nobody reads any more.
        return ["sh", "-c", {
            "closed-pipe": f"{{ sleep 0.2; {{ {walk}; }} >&3; echo status $? >&3; }} 3>&1 2>&1 | true; sleep 1",
            "closed": f"exec 2>&-; {walk}; echo status $?",
            "no-size": f"(ulimit -f 0; {walk}; echo status $?) | cat",
        }.get(target, f"{walk}; echo status $?")]

    path = {"closed-pipe": "-", "closed": "-", "no-size": "/run/lab/trace-without-size", "full": "/dev/full",
            "no-folder": "/nowhere/trace", "folder": "/run/lab", "fifo": "/run/lab/fifo"}[target]
    if target == "fifo" and not pathlib.Path(path).exists():
        topology.call("mkfifo", path)
    hardening.compare(network, f"trace to {target}", command, environment={"HAPPY_TRACE": path}, sooner=True)


for target in ("closed-pipe", "closed", "no-size", "full", "no-folder", "folder", "fifo"):
    REGISTRY[f"again_trace_{target.replace('-', '_')}"] = Case(traced_to, ("v6-reset",), (target,), load=LIGHT,
                                                               lab_options=ONE_RETRY)

@case("v6-slow=600", load=LIGHT)
def asleep_on_a_connecting_socket(network):
    """A thread in send() or recv() on it sees that socket connect: it keeps its own."""
    calls = ("send", "write", "sendmsg", "recv", "read", "own-send")
    runs = [(call, hosts, [network.start(victim("asleep", call, host.name, 7), happy=host is hosts[1],
                                         trace=hardening.TRACE) for host in hosts])
            for call in calls for hosts in [[network.host(f"{call}-{label}") for label in ("bare", "happy")]]]
    for call, hosts, programs in runs:
        hardening.judge(f"asleep in {call}", hosts, *(program.wait(10) for program in programs))


# -- what a socket, a stack and an error code must not notice --


@case("v6-drop")
def disconnected_in_mid_race(network):
    """connect() to AF_UNSPEC ends the race: what the socket connects to then is none of the name's addresses. Waiting
    calls that the kernel refuses are refused."""
    hardening.compare(network, "disconnected in mid-race",
                      lambda host: victim("disconnected", host.name, 7, "2001:db8:2::77"))


def small_stack(network, kib):
    """Where there is no room for our own lookup, libc's is done, for which glibc 2.41 has no room in the smallest stack."""
    host = network.host("room")
    while kib < 24 and network.run(victim("small_stack", kib, host.name), happy=False).status != 0:
        kib += 2
    hardening.compare(network, f"a stack of {kib} KiB", lambda host: victim("small_stack", kib, host.name), sooner=True)


for kib in (16, 24, 32, 64):
    REGISTRY[f"small_stack_of_{kib}"] = Case(small_stack, (), (kib,), load=LIGHT)


@case(load=LIGHT)
def messages_that_cannot_be_read(network):
    """The kernel refuses them, and nobody looks at them before."""
    script = """
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    fd = socket.socket(socket.AF_INET, kind).fileno()
    for call in (lambda: libc.sendmsg(fd, 1, 0), lambda: libc.sendmmsg(fd, 1, 1, 0)):
        print(call(), errno.errorcode[ctypes.get_errno()])
"""
    hardening.compare(network, "messages at wild addresses", lambda _: ["/usr/bin/python3", "-c", script],
                      environment={"HAPPY_UDP": "1"})


def coroutine(network, where, kib, what):
    """What lies below a coroutine's small stack is not written to, whether a page guards it or not."""
    hardening.compare(network, f"{what} in a coroutine of {kib} KiB, {where}",
                      lambda host: victim("coroutine", where, kib, what, host.name, 7), sooner=True)


for where in ("guarded", "heap", "mapped"):
    for kib, what in ((8, "connect"), (20, "lookup")):
        REGISTRY[f"coroutine_{where}_{what}"] = Case(coroutine, ("all-reset",), (where, kib, what), load=LIGHT)


def fiber(network, what):
    """A coroutine on a large stack with a page that guards it, such as fibers of Ruby and PHP have, is helped."""
    host = network.host("fiber")
    run = network.run(victim("coroutine", "guarded", 448, what, host.name, 7), happy=True)
    check_equal((run.status, run.output), (0, "result 0\nbelow intact\n"), "the program")
    check(run.seconds() < 2, f"{run.seconds():.2f} s")


for what, fault in ("connect", "v6-drop"), ("lookup", "aaaa-silent"):
    REGISTRY[f"fiber_{what}"] = Case(fiber, (fault,), (what,), load=LIGHT)

FIBERS = {
    "ruby": ["ruby", "-rsocket", "-e", "Fiber.new { TCPSocket.new(ARGV[0], 80) }.resume"],
    "php": ["php", "-r", "(new Fiber(function ($name) { fsockopen($name, 80) || exit(1); }))->start($argv[1]);"],
}


def fiber_program(network, name):
    """The real ones, which keep their fibers' stacks where they like."""
    host = network.host("fiber")
    run = network.run([*FIBERS[name], host.name], happy=True)
    check_equal(run.status, 0, "status")
    check_equal([accept["address"] for accept in network.wait_accepts(host, 1)], host.ipv4, "connections")
    check(run.seconds() < 3, f"{run.seconds():.2f} s")


for name in FIBERS:
    REGISTRY[f"fiber_{name}"] = Case(fiber_program, ("v6-drop",), (name,), load=LIGHT)

H_ERRNO = "for my $n (@ARGV) { $? = 0; my @h = gethostbyname($n); print 'error ', $?, ' ', scalar(@h), chr(10) }"


@case()
def h_errno_of_reentrant_functions(network):
    """gethostbyname_r(), which perl calls, sets the thread's h_errno too."""
    network.set_record("servfail.test", "A", action="servfail")
    hardening.compare(network, "h_errno", lambda host: ["perl", "-e", H_ERRNO, host.name, "absent.test", "servfail.test"])


@case()
def reorder_is_obeyed(network):
    """RESOLV_REORDER=on: gethostbyname() puts the addresses of the host's own networks first."""
    near = "192.0.2.80"  # the client is in 192.0.2.0/24
    script = "import socket, sys; print(socket.gethostbyname_ex(sys.argv[1])[2])"
    def command(host):
        network.set_record(host.name, "A", records=["198.51.100.8", near])
        return ["/usr/bin/python3", "-c", script, host.name]

    _, bare, _ = hardening.compare(network, "RESOLV_REORDER", command, environment={"RESOLV_REORDER": "on"})
    check_equal(bare.output.startswith(f"['{near}'"), True, f"bare reorders ({bare.output!r})")


@case()
def many_addresses_leave_room(network):
    """A list of libc's own with more IPv6 addresses than are kept: IPv4 has its place among them."""
    ipv6 = [f"2001:db8:2:d::1{number:x}" for number in range(1, 101)]
    host = network.host("many", [*ipv6, *network.host("live").ipv4])
    run = network.run(["/usr/bin/python3", "-IS", "-c", f"import socket; print(socket.create_connection(('{host.name}', 7)).getpeername()[0])"],
                      happy=True, seconds=8)
    check_equal(run.output, f"{host.ipv4[0]}\n", "peer")
