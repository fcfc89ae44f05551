"""What one program has met, the next one knows: the history in XDG_RUNTIME_DIR."""

import os
import pathlib
import time

import hardening
import programs
import topology
from cases import case, check, check_between, check_equal, families, report, victim

SIZE = 4096
RETRY_S = 2  # HAPPY_HISTORY_RETRY_S: at most ten times that until a family that works is preferred again
FILE = "happy-history"


def make_folder(network, name="runtime"):
    """A folder as logind makes it."""
    folder = network.folder / name
    folder.mkdir(mode=0o700)
    folder.chmod(0o700)
    return folder


def connect(network, host, folder, program="wget", retry_s=60, **settings):
    """One program to its end: (families of its SYNs, ms from its first query to the server's accept(), families
    of what was accepted)."""
    network.sync()
    before = len(network.syns(host)), len(network.accepts(host)), len(network.find("query", name=host.name))
    known = programs.find(program) if isinstance(program, str) else program
    run = network.run(known.command(host), happy=True, stdin=known.stdin, environment={
        "XDG_RUNTIME_DIR": str(folder), "HAPPY_HISTORY_RETRY_S": str(retry_s), **settings})
    check_equal(run.status, known.status, f"status of {program}: {run.output[-300:]}")
    accepts = network.wait_accepts(host, before[1] + 1)[before[1]:]
    syns = network.syns(host)[before[0]:]
    check_equal(len(accepts), 1, "connections")
    asked_ms = network.find("query", name=host.name)[before[2]]["time_ms"]
    return families(syns), accepts[0]["time_ms"] - asked_ms, families(accepts)


def heal():
    """IPv6 SYNs get through from now on."""
    topology.call("ip", "netns", "exec", "r", "nft", "flush", "chain", "inet", "lab", "forward")


def lose(host):
    """IPv6 SYNs to this host vanish from now on."""
    topology.call("ip", "netns", "exec", "r", "nft", "add", "rule", "inet", "lab", "forward", "ip6", "daddr", host.ipv6[0],
                  "tcp", "flags", "syn", "drop")


def check_file(folder):
    """The file is there, as it has to be."""
    file = (folder / FILE).lstat()
    check_equal((file.st_size, file.st_mode & 0o7777, file.st_uid), (SIZE, 0o600, os.geteuid()), "the file")


# spec: SORT-5
@case("v6-drop", load="heavy")
def history_second_program_is_fast(network):
    """Two programs one after the other where IPv6 is dropped: the second goes by IPv4 at once."""
    folder = make_folder(network)
    host = network.host("twice")
    syns, took_ms, used = connect(network, host, folder)
    check_equal((syns, used), ("64", "4"), "SYNs and connection of the first")
    check_between(took_ms, 250, 900, "ms from query to connection of the first")
    check_file(folder)
    seconds = [connect(network, host, folder) for _ in range(3)]
    check_equal({(syns, used) for syns, _, used in seconds}, {("4", "4")}, "SYNs and connection of those after it")
    best_ms = min(took_ms for _, took_ms, _ in seconds)
    hardening.tell("two programs where IPv6 vanishes, ms from query to accept(), RTT 20", f"first {took_ms:.0f}",
                   f"best of three after it {best_ms:.0f}", True)
    check_between(best_ms, 20, 80, "ms from query to connection of the best after it")
    # Other kinds of programs know of it too.
    for program in ("python-create-connection", "ssh", "bash-dev-tcp"):
        syns, took_ms, used = connect(network, host, folder, program)
        check_equal((syns, used), ("4", "4"), f"SYNs and connection of {program}")


_ASYNCIO = "import asyncio; asyncio.run(asyncio.open_connection('{}', 80))"
_THREADS = "import threading, socket; t = threading.Thread(target=lambda: socket.create_connection(('{}', 80)))" \
           "; t.start(); t.join()"


@case("v6-drop")
def history_of_every_kind_of_program(network):
    """Non-blocking programs, those with threads and those that race by themselves teach and learn alike."""
    for name, words in (("nc", ("nc", "-N", "{}", "80")), ("asyncio", ("/usr/bin/python3", "-c", _ASYNCIO)),
                        ("threads", ("/usr/bin/python3", "-c", _THREADS))):
        program = programs.Program(name, words)
        folder = make_folder(network, name)
        host = network.host(name)
        check_equal([connect(network, host, folder, program)[0] for _ in range(2)], ["64", "4"], f"SYNs of {name}")
        check_file(folder)


@case("v6-slow=1000", "v4-slow=300")
def history_of_an_attempt_that_connects_after_all(network):
    """The program's own attempt, overtaken while a handler holds the caller up, connects before that comes back."""
    folder = make_folder(network)
    host = network.host("late")
    run = network.run(victim("interrupted", "linger", 400, host.name, 80), happy=True,
                      environment={"XDG_RUNTIME_DIR": str(folder)})
    check_equal(report(run), {"connect": "connected", "alarms": "1", "socket": "kept"}, "what the program saw")
    check_equal(families(network.syns(host)), "64", "SYNs")
    check_file(folder)
    syns, _, _ = connect(network, host, folder)
    check_equal(syns[0], "6", "family of the next program's first SYN")


# spec: SORT-5
@case("v6-drop")
def history_two_names_speak_for_the_family(network):
    """What two names have met is known of the third."""
    folder = make_folder(network)
    check_equal([connect(network, network.host(f"name{i}"), folder)[0] for i in range(3)], ["64", "64", "4"],
                "SYNs to three names")


# spec: SORT-5
@case("v6-drop", seconds=80)
def history_converges(network):
    """Once IPv6 works it is tried first again when its time has come, and used from then on."""
    folder = make_folder(network)
    host = network.host("healed")
    check_equal(connect(network, host, folder, retry_s=RETRY_S)[0], "64", "SYNs of the first")
    check_equal(connect(network, host, folder, retry_s=RETRY_S)[0], "4", "SYNs of the second")
    time.sleep(2 * RETRY_S + 0.5)
    check_equal(connect(network, host, folder, retry_s=RETRY_S)[0], "64", "SYNs of the retry that fails")
    heal()
    healed = time.monotonic()
    while True:
        syns, _, used = connect(network, host, folder, retry_s=RETRY_S)
        waited = time.monotonic() - healed
        check(waited < 10 * RETRY_S + 5, f"IPv6 is not used {waited:.0f} s after it works")
        if used == "6":
            break
        check_equal(syns, "4", "SYNs while it is not due")
        time.sleep(0.5)
    check(waited > RETRY_S / 2, f"IPv6 is used after {waited:.1f} s: it was not put last")
    for _ in range(3):
        check_equal(connect(network, host, folder, retry_s=RETRY_S)[::2], ("6", "6"), "SYNs after that")


NEAR, FAR, LOST = range(3)  # IPv6's round trip takes 20, 320 and 620 ms


# spec: ATTEMPT-4 ATTEMPT-5
@case("v6-ladder=-300,300", load="heavy")
def history_moves_the_flip(network):
    """What the kernel knows of a path sets the delay: IPv4 is tried sooner where IPv6 was near, later where it was far."""
    folder = make_folder(network)
    hosts = [network.host(label) for label in ("near", "far", "lost")]

    def gap_ms(which, **settings):
        """(families of the SYNs, ms from the first to the second)"""
        before = len(network.syns(hosts[which]))
        found, _, _ = connect(network, hosts[which], folder, **settings)
        syns = network.syns(hosts[which])[before:]
        return found, syns[1]["time_ms"] - syns[0]["time_ms"] if len(syns) > 1 else None

    for which in (NEAR, FAR):  # the kernel learns
        run = network.run(programs.find("wget").command(hosts[which]))
        check_equal(run.status, programs.find("wget").status, f"status of bare wget: {run.output[-300:]}")
    # The file does not know this network: 250 ms.
    check_equal(gap_ms(FAR, HAPPY_HISTORY="off")[0], "64", "SYNs to what is far, without history")
    check_equal(gap_ms(LOST)[0], "64", "SYNs of what teaches the file this network")
    check_file(folder)
    check_equal(gap_ms(FAR)[0], "6", "SYNs to what is far")
    lose(hosts[NEAR])
    found, gap = gap_ms(NEAR, HAPPY_HISTORY="off")
    check_equal(found, "64", "SYNs to what is near, without history")
    check_between(gap, 230, 450, "ms between them")
    found, gap = gap_ms(NEAR)
    check_equal(found, "64", "SYNs to what is near")
    check_between(gap, 90, 200, "ms between them")


# spec: SORT-4
@case("v6-drop")
def history_of_another_network(network):
    """With another address the host is on another network, of which nothing is known; back again, it is."""
    folder = make_folder(network)
    host = network.host("moved")
    check_equal(connect(network, host, folder)[0], "64", "SYNs of the first")
    topology.call("ip", "-n", "c", "addr", "add", "192.0.2.77/24", "dev", "c0")
    topology.call("ip", "-n", "c", "route", "replace", "default", "via", "192.0.2.1", "src", "192.0.2.77")
    check_equal(connect(network, host, folder)[0], "64", "SYNs with another address")
    topology.call("ip", "-n", "c", "route", "replace", "default", "via", "192.0.2.1")
    check_equal(connect(network, host, folder)[0], "4", "SYNs with the first address again")


@case("v6-drop", seconds=80)
def history_odd_files(network):
    """A file or a folder that is not exactly what it has to be is as none, and hurts nobody. A file of the user's own is
    replaced; what is another's, or something else, stays as it is."""
    host = network.host("odd")
    good = make_folder(network, "good")
    check_equal(connect(network, host, good)[0], "64", "SYNs of the first")
    whole = (good / FILE).read_bytes()
    own = os.geteuid()

    def put(folder, content, mode=0o600, owner=own):
        path = folder / FILE
        path.write_bytes(content)
        path.chmod(mode)
        os.chown(path, owner, -1)

    damaged = b"".join(whole[i:i + 64] if i == 0 else bytes(b ^ 1 for b in whole[i:i + 64])
                       for i in range(0, SIZE, 64))
    odd = {
        "unreadable heading": lambda f: put(f, b"x" * SIZE),
        "every record damaged": lambda f: put(f, damaged),
        "somebody else's": lambda f: put(f, whole, owner=1234),
        "readable by others": lambda f: put(f, whole, mode=0o644),
        "too short": lambda f: put(f, whole[:-1]),
        "too long": lambda f: put(f, whole + b"\0"),
        "a symbolic link": lambda f: (f / FILE).symlink_to(good / FILE),
        "a hard link": lambda f: (put(f, whole), os.link(f / FILE, f / "another")),
        "a folder": lambda f: (f / FILE).mkdir(),
        "a FIFO": lambda f: os.mkfifo(f / FILE, 0o600),
        "in a folder that others may write": lambda f: (put(f, whole), f.chmod(0o777)),
        "in somebody else's folder": lambda f: (put(f, whole), os.chown(f, 1234, -1)),
    }
    replaced = {"unreadable heading", "every record damaged", "readable by others", "too short", "too long", "a hard link"}
    for number, (what, make) in enumerate(odd.items()):
        folder = make_folder(network, f"odd{number}")
        make(folder)
        before = (folder / FILE).read_bytes() if (folder / FILE).is_file() else None
        check_equal(connect(network, host, folder)[0], "64", f"SYNs with a file that is {what}")
        if what in replaced:
            check_file(folder)
            check_equal(connect(network, host, folder)[0], "4", f"SYNs after a file that was {what}")
        elif before is not None:
            check((folder / FILE).read_bytes() == before, f"a file that is {what} was changed")
    check((network.folder / f"odd{list(odd).index('a hard link')}" / "another").read_bytes() == whole, "the file's other name")
    for folder in (network.folder / "absent", "relative", "", pathlib.Path("/proc/self")):
        check_equal(connect(network, host, folder)[0], "64", f"SYNs with XDG_RUNTIME_DIR={folder}")
    check(not (network.folder / "absent").exists(), "a folder was made")
    check_equal(connect(network, host, good)[0], "4", "SYNs with the file as it was")


@case("v6-drop")
def history_off(network):
    """HAPPY_HISTORY=off: nothing is written, nothing is read."""
    folder = make_folder(network)
    host = network.host("off")
    check_equal(connect(network, host, folder, HAPPY_HISTORY="off")[0], "64", "SYNs of the first")
    check(not list(folder.iterdir()), "a file was made")
    check_equal(connect(network, host, folder)[0], "64", "SYNs of the second")
    check_equal(connect(network, host, folder, HAPPY_HISTORY="off")[0], "64", "SYNs of the third")


@case()
def history_healthy_network(network):
    """Where nothing is wrong nothing is written, and netlink is not asked."""
    folder = make_folder(network)
    for program in ("wget", "python-create-connection", "git"):
        host = network.host(program)
        check_equal(connect(network, host, folder, program)[::2], ("6", "6"), f"SYNs of {program}")
    check(not list(folder.iterdir()), "a file was made")


@case("v6-drop")
def history_leaves_comparing_programs_alone(network):
    """Programs that print or compare addresses see libc's order."""
    folder = make_folder(network)
    host = network.host("compared")
    check_equal(connect(network, host, folder)[0], "64", "SYNs of the first")
    listed = [network.run(["getent", "ahosts", host.name], happy=happy,
                          environment={"XDG_RUNTIME_DIR": str(folder)}).output for happy in (False, True)]
    check_equal(listed[1], listed[0], "what getent says")
    check_equal(connect(network, host, folder)[0], "4", "SYNs of the second")
