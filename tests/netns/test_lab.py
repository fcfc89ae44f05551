"""The lab does what it says: bare programs in each kind of network, and nothing left behind."""

import os
import select
import subprocess
import time

import lab
import programs
from cases import (case, case_per_program, check, check_between, check_connected, check_equal, families, report,
                   victim)

BARE_SECONDS = 4  # a bare program that has not connected by then waits for much longer (measured: 20 s and 15 s)


@case_per_program()
def bare_healthy(network, program):
    """Each program works against the fake servers, and ends as the table says."""
    host = network.host(program.name)
    run = network.run(program.command(host), stdin=program.stdin)
    check_connected(network, host, run, "6", 2)
    check_equal(run.status, program.status, "exit status")


def check_bare_hangs(network):
    """All programs at once, bare: none has reached a server at the cut-off."""
    started = []
    for program in programs.PROGRAMS:
        host = network.host(program.name)
        started.append((program, host, network.start(program.command(host), stdin=program.stdin)))
    for program, host, running in started:
        run = running.wait(BARE_SECONDS)
        check_equal(run.status, None, f"status of bare {program.name}")
        check_equal(network.accepts(host), [], f"connections of bare {program.name}")


@case("v6-drop")
def bare_v6_drop(network):
    """Without libhappy, silent IPv6 holds every program up."""
    check_bare_hangs(network)


@case("aaaa-silent")
def bare_aaaa_silent(network):
    """Without libhappy, a lost AAAA answer holds every program up."""
    check_bare_hangs(network)


@case("first-address-dead")
def bare_first_address_dead(network):
    """Without libhappy, dead first addresses hold every program up."""
    check_bare_hangs(network)


def walk(network, *options, **settings):
    """Runs the address walker, bare, against a new name; its report."""
    host = network.host("walk", **settings)
    run = network.run(victim("walk", *options, host.name, 7))
    return host, run, report(run)


@case("v6-reset")
def bare_v6_reset(network):
    """A reset arrives as ECONNREFUSED, a round trip later."""
    host, run, said = walk(network)
    check_equal(said[host.ipv6[0]], "ECONNREFUSED", "errno")
    check_connected(network, host, run, "4", 0.5)


@case("v6-unreachable")
def bare_v6_unreachable(network):
    """A router's ICMP error reaches a waiting connect(): hard, not after the first retransmission."""
    host, run, said = walk(network)
    check_equal(said[host.ipv6[0]], "EHOSTUNREACH", "errno")
    check_connected(network, host, run, "4", 0.5)


@case("v6-noroute")
def bare_v6_noroute(network):
    """Without a route glibc sorts IPv6 last: it is not even tried."""
    host, run, said = walk(network)
    check(host.ipv6[0] not in said, "IPv6 was tried")
    check_connected(network, host, run, "4", 0.5)


@case("v6-prohibited", "v4-unreachable")
def bare_icmp_errors(network):
    """The errno of the ICMP errors, per family."""
    host, _, said = walk(network)
    check_equal([said[a] for a in host.addresses()], ["EACCES", "EHOSTUNREACH"], "errno")


@case("v6-slow=300", "v4-slow=100")
def delays(network):
    """A round trip takes as long as was asked for, to within a few ms (25 on a busy machine)."""
    host = network.host("slow")
    for address, rtt_ms in ((host.ipv6[0], 300), (host.ipv4[0], 100)):
        run = network.run(victim("walk", "-o", address, host.name, 7))
        check_equal(run.status, 0, f"status; {run.output}")
        syn = next(syn for syn in network.syns(host) if syn["address"] == address)
        accept = network.find("accept", address=address)[0]
        took_ms = accept["time_ms"] - syn["time_ms"]
        check_between(took_ms, 1.5 * rtt_ms - 1, 1.5 * rtt_ms + 25, "ms from SYN to accept()")


@case("v6-loss=100")
def loss(network):
    """Lost packets are lost, and counted as sent."""
    host, run, said = walk(network, "-s", "300")
    check_equal(said[host.ipv6[0]], "EINPROGRESS", "errno")
    check_equal(run.status, 0, "status")
    check_equal(families(network.syns(host)), "64", "SYNs")


@case("dns-truncated")
def dns_over_tcp(network):
    """Truncated answers are asked for again over TCP."""
    host, run, _ = walk(network)
    check_connected(network, host, run, "6", 1)
    check_equal({query["transport"] for query in network.find("query", name=host.name)}, {"udp", "tcp"}, "transports")


@case("aaaa-late=300")
def dns_delay(network):
    """A late answer is late by what was asked for, and delays no other."""
    host, run, _ = walk(network)
    queries = {query["type"]: query["time_ms"] for query in network.find("query", name=host.name)}
    check_between(abs(queries["AAAA"] - queries["A"]), 0, 25, "ms between the two queries")
    check_between(network.syns(host)[0]["time_ms"] - queries["AAAA"], 300, 400, "ms from the AAAA query to the SYN")
    check_connected(network, host, run, "6", 1)


@case("ns-dead")
def bare_dead_nameserver(network):
    """glibc gives a silent nameserver 5 s before it asks the next."""
    host = network.host("late")
    run = network.run(victim("walk", host.name, 7), seconds=BARE_SECONDS)
    check_equal(run.status, None, "status")
    check_equal(network.find("query", name=host.name), [], "queries that reached the live nameserver")


@case()
def dns_records(network):
    """CNAME chains, SRV, HTTPS in hexadecimal, and error codes come out as glibc's resolver expects them."""
    host = network.host("target")
    network.set_record("alias.test", "CNAME", records=[host.name])
    network.set_record("broken.test", "A", action="servfail")
    network.set_record("broken.test", "AAAA", action="servfail")
    network.set_record("_xmpp._tcp.test", "SRV", records=[f"1 2 5222 {host.name}"])
    network.set_record("web.test", "HTTPS", records=["000100"])
    run = network.run(victim("walk", "alias.test", 7))
    check_connected(network, host, run, "6", 1)
    for name, text in (("broken.test", "Temporary failure in name resolution"),
                       ("absent.test", "Name or service not known")):
        run = network.run(victim("walk", name, 7))
        check_equal(run.output.strip(), f"getaddrinfo {text}", name)
    script = ("import socket,struct,sys\n"
              "def ask(name, number):\n"
              " q=struct.pack('!6H',7,256,1,0,0,0)+b''.join(bytes([len(l)])+l.encode() for l in name.split('.'))"
              "+struct.pack('!BHH',0,number,1)\n"
              " s=socket.create_connection(('2001:db8:2:53::53',53)); s.sendall(struct.pack('!H',len(q))+q)\n"
              " s.shutdown(1); print(s.makefile('rb').read()[2+len(q):].hex())\n"
              "ask('_xmpp._tcp.test',33); ask('web.test',65)")
    run = network.run([lab.PYTHON, "-c", script])
    check("000100021466" + b"\6target\4test\0".hex() in run.output, f"SRV: {run.output}")
    check(run.output.endswith("0003000100\n"), f"HTTPS: {run.output}")


@case("v6-drop", userns=True)
def in_user_namespace(network):
    """The whole lab works without being the real root."""
    host = network.host("walk")
    run = network.run(victim("walk", "-s", "200", host.name, 7))
    check_connected(network, host, run, "4", 1)
    with open("/proc/self/uid_map", encoding="ascii") as table:
        mapping = table.read().split()
    check(mapping != ["0", "0", "4294967295"], "this is no user namespace")


def processes_with(marker):
    """The ids of the processes whose environment has the marker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment:
                if marker in environment.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


def mount_table():
    """What is mounted in this namespace."""
    with open("/proc/mounts", encoding="ascii") as mounts:
        return mounts.read()


@case()
def killed_lab_leaves_nothing(network):
    """A lab whose starter gets SIGKILL is gone: processes, namespaces, mounts."""
    variable = "LAB_TO_BE_KILLED"
    marker = f"{variable}=1".encode()
    script = f"import sys; sys.path.insert(0, {str(lab.HERE)!r})\nimport lab, time\n" \
             f"lab.Lab({str(network.folder / 'inner')!r}); print('up', flush=True); time.sleep(60)"
    starter = subprocess.Popen(
        lab.isolated_command([lab.PYTHON, "-c", script]), stdout=subprocess.PIPE,
        env={**os.environ, variable: "1"})
    check_equal(starter.stdout.readline(), b"up\n", "first line of the inner lab")
    inner = processes_with(marker)
    check(len(inner) >= 5, f"only {len(inner)} processes belong to the inner lab")
    mounts = mount_table()
    alive = [os.pidfd_open(pid) for pid in inner]
    starter.kill()
    starter.wait()
    deadline = time.monotonic() + 5
    while alive and time.monotonic() < deadline:
        gone, _, _ = select.select(alive, [], [], 0.1)
        alive = [pidfd for pidfd in alive if pidfd not in gone]
    check_equal(len(alive), 0, "processes alive after 5 s")
    check_equal(processes_with(marker), [], "processes left")
    check_equal(mount_table(), mounts, "mounts")
