"""Today's programs, unmodified, in each kind of broken network, bare and with libhappy: `make matrix`.

    /usr/bin/python3 tests/netns/matrix.py [--programs NAME,...] [FAULT ...]

A cell gives the seconds from the program's start to the server's accept() of the connection that it used, bare and with
libhappy. Exit status 1 if a program connects later than it should, ends with another status than in the healthy network,
or sends an endpoint more SYNs than it does by itself.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import time

import lab
import pivot
from cases import families

LOGS = lab.ROOT / "build/tests/matrix-logs"
JAVA = lab.ROOT / "build/tests/java"
AT_ONCE = 5  # programs of one lab at a time
CUT_OFF_S = 4  # bare ones, many of which wait for minutes; lab time, not theirs
SLACK_S = 0.15  # two cores, ten programs
OTHERS_S = 0.1  # a program with a race of its own may be so much later than bare
TRIES = 3  # cells that failed are measured again, with nothing but one another beside them

# What a fault may add to the program's time in the healthy network.
FAULTS = {"healthy": 0.05, "v6-drop": 0.35, "v6-reset": 0.1, "v6-unreachable": 0.1, "first-address-dead": 0.9,
          "aaaa-silent": 0.15, "v6-noroute": 0.1, "v6-prohibited": 0.1, "v6-slow=600": 0.4, "v4-drop": 0.35,
          "a-silent": 0.15, "aaaa-late=400": 0.15, "aaaa-servfail": 0.1, "dns-truncated": 0.1, "ns-dead": 0.4}
SHORT = ("v6-drop", "first-address-dead", "aaaa-silent")  # besides healthy: what CI runs

REQUEST = b"GET / HTTP/1.0\r\n\r\n"
ASYNCIO = "import asyncio, sys\nasync def main():\n" \
          "    r, w = await asyncio.open_connection('{}', 80, happy_eyeballs_delay=DELAY)\n" \
          "    w.write(b'GET / HTTP/1.0\\r\\n\\r\\n')\n    assert await r.read()\n    w.close()\nasyncio.run(main())"
URLLIB = "import urllib.request; print(urllib.request.urlopen('http://{}/').read())"
CREATE = "import socket; s = socket.create_connection(('{}', 7)); s.send(b'x'); s.recv(1)"
PERL = "use IO::Socket::CLASS; my $s = IO::Socket::CLASS->new(PeerHost => '{}', PeerPort => 7, Type => 1) or die; " \
       "$s->syswrite('x'); $s->sysread(my $r, 1)"
LWP = "use LWP::UserAgent; my $r = LWP::UserAgent->new(env_proxy => 0)->get('http://{}/'); die unless $r->is_success"
RUBY = "require 'net/http'; print Net::HTTP.get('{}', '/')"
PHP = "exit(file_get_contents('http://{}/') === false ? 1 : 0);"
NODE = "require('http').get('http://{}/', r => r.resume()).on('error', () => process.exit(1))"
BASH = r"exec 3<>/dev/tcp/{}/80; printf 'GET / HTTP/1.0\r\n\r\n' >&3; cat <&3"
SSH = ("ssh", "-F/dev/null", "-oBatchMode=yes", "-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "{}", "true")
PYTHON = lab.PYTHON
JAVA_SOURCE = """
public class Get {
    public static void main(String[] a) throws Exception { new java.net.URL(a[0]).openStream().readAllBytes(); }
}
"""

# name -> command, stdin, and whether it has a race or a resolver of its own: then bare is what it is measured by.
PROGRAMS = {
    "curl": (("curl", "-s", "http://{}/"), b"", True),
    "wget": (("wget", "-q", "-t1", "-O-", "http://{}/"), b"", False),
    "nc": (("nc", "{}", "80"), REQUEST, False),
    "ssh": (SSH, b"", False),
    "telnet": (("telnet", "{}"), None, False),
    "ftp": (("ftp", "-n", "{}", "25"), b"quit\n", False),
    "lftp": (("lftp", "-c", "set net:max-retries 1; cat http://{}/"), b"", False),
    "ncftpls": (("ncftpls", "-P", "25", "-r", "1", "-t", "3", "ftp://{}/"), b"", False),
    "git": (("git", "ls-remote", "git://{}/x"), b"", False),
    "git-http": (("git", "ls-remote", "http://{}/x"), b"", True),
    "git-https": (("git", "-c", "http.sslVerify=false", "ls-remote", "https://{}/x"), b"", True),
    "rsync": (("rsync", "rsync://{}:25/x"), b"", False),
    "redis-cli": (("redis-cli", "-h", "{}", "-p", "25", "ping"), b"", False),
    "psql": (("psql", "host={} port=25 dbname=x", "-c", "1"), b"", False),
    "mariadb": (("mariadb", "-h", "{}", "-P", "25", "-e", "quit"), b"", False),
    "py-urllib": ((PYTHON, "-c", URLLIB), b"", False),
    "py-create_conn": ((PYTHON, "-c", CREATE), b"", False),
    "py-asyncio": ((PYTHON, "-c", ASYNCIO.replace("DELAY", "None")), b"", False),
    "py-asyncio-HE": ((PYTHON, "-c", ASYNCIO.replace("DELAY", "0.25")), b"", True),
    "perl-INET": (("perl", "-e", PERL.replace("CLASS", "INET")), b"", False),
    "perl-IP": (("perl", "-e", PERL.replace("CLASS", "IP")), b"", False),
    "perl-LWP": (("perl", "-e", LWP), b"", False),
    "ruby-nethttp": (("ruby", "-e", RUBY), b"", False),
    "php": (("php", "-r", PHP), b"", False),
    "node": (("node", "-e", NODE), b"", True),
    "java": (("java", "-cp", str(JAVA), "Get", "http://{}/"), b"", False),
    "lynx": (("lynx", "-dump", "http://{}/"), b"", False),
    "w3m": (("w3m", "-dump", "http://{}/"), b"", False),
    "links": (("links", "-dump", "http://{}/"), b"", True),
    "swaks": (("swaks", "--server", "{}", "--to", "a@x.test", "--from", "b@x.test"), b"", False),
    "msmtp": (("msmtp", "--host={}", "--serverinfo"), b"", False),
    "s_client": (("openssl", "s_client", "-connect", "{}:443"), b"", False),
    "ldapsearch": (("ldapsearch", "-x", "-H", "ldap://{}", "-b", "dc=test", "-s", "base"), b"", False),
    "irssi": (("env", "TERM=xterm", "irssi", "-c", "{}", "-p", "25"), None, False),
    "aria2c": (("aria2c", "-q", "--allow-overwrite", "-d", "/run/lab", "-o", "a-{}", "http://{}/"), b"", True),
    "socat": (("socat", "-u", "TCP:{}:25", "OPEN:/dev/null"), b"", False),
    "ab": (("ab", "-n", "1", "http://{}/"), b"", False),
    "wrk": (("wrk", "-t1", "-c1", "-d1", "http://{}/"), b"", False),
    "mosquitto_pub": (("mosquitto_pub", "-h", "{}", "-t", "t", "-m", "m"), b"", False),
    "apt-helper": (("/usr/lib/apt/apt-helper", "-oAcquire::Retries=0", "download-file", "http://{}/x", "/run/lab/g-{}"), b"",
                   True),
    "busybox-wget": (("busybox", "wget", "-q", "-O-", "http://{}/"), b"", False),
    "bash-devtcp": (("bash", "-c", BASH), b"", False),
}
IPV4_ONLY = ("ncftpls", "redis-cli", "perl-INET", "swaks")  # they ask for nothing else: without it, as bare
WITHOUT_IPV4 = ("v4-drop", "a-silent")
ENDLESS = ("irssi", "wrk")  # irssi never ends by itself, wrk asks for a second, again and again


def used_accept(network, host):
    """The connection that the program used: the first on which it sent something, else the first."""
    accepts = network.accepts(host)
    ends = {end["id"]: end for end in network.find("end")}
    return next((a for a in accepts if ends.get(a["id"], {}).get("bytes")), accepts[0] if accepts else None)


def measure(network, names):
    """Runs these programs at the same time, each bare and with libhappy."""
    started = []
    for name in names:
        words, stdin, _ = PROGRAMS[name]
        for happy in (False, True):
            host = network.host(f"{name.lower().replace('_', '-')}-{'happy' if happy else 'bare'}")
            command = [word.replace("{}", host.name) for word in words]
            started.append((name, happy, host, network.start(command, happy=happy, stdin=stdin)))
    results = {name: {} for name in names}
    for name, happy, host, program in started:
        run = program.wait(2 if name == "irssi" else CUT_OFF_S)
        accept = used_accept(network, host)
        syns = [syn["address"] for syn in network.syns(host)]
        results[name]["happy" if happy else "bare"] = {
            "seconds": (accept["time_ms"] - run.started_ms) / 1000 if accept else None,
            "family": families([accept]) if accept else "", "status": run.status, "syns": families(network.syns(host)),
            "most_syns": max((syns.count(address) for address in syns), default=0), "output": run.output[-200:]}
    return results


def chunks(names):
    """A lab has 52 names, a program needs two."""
    size = 25
    return [names[begin:begin + size] for begin in range(0, len(names), size)]


def start(fault, names, number):
    """A lab of its own for some programs."""
    command = lab.isolated_command([PYTHON, str(pathlib.Path(__file__).resolve()), "--inside", fault, "--folder", str(number),
                                    "--programs", ",".join(names)])
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def results_of(process):
    """What a lab printed."""
    output, _ = process.communicate()
    return json.loads(output.splitlines()[-1])


def run_fault(fault, names, label=""):
    """All programs in one fault, two labs at a time."""
    results = {}
    for process in [start(fault, part, f"{number}{label}") for number, part in enumerate(chunks(names))]:
        results.update(results_of(process))
    return results


def troubles(name, fault, result, healthy):
    """What is wrong with a cell."""
    bare, happy = result["bare"], result["happy"]
    calm = healthy["bare"]
    found = []
    as_bare = name == "aria2c" or (name in IPV4_ONLY and fault in WITHOUT_IPV4)  # aria2c looks up by itself
    wanted = bare["status"] if as_bare else calm["status"]
    if happy["status"] != wanted and name not in ENDLESS:
        found.append(f"status {happy['status']}")
    limit = calm["seconds"] + FAULTS[fault] + SLACK_S if calm["seconds"] is not None else 0
    if name == "wrk":
        limit += 3 * FAULTS[fault]  # it first connects to each of four addresses, and each of these is raced
    if PROGRAMS[name][2] and bare["seconds"] is not None:
        limit = bare["seconds"] + OTHERS_S
    if as_bare and bare["seconds"] is None:
        limit = CUT_OFF_S
    elif happy["seconds"] is None:
        found.append("no connection")
    if happy["seconds"] is not None and happy["seconds"] > limit:
        found.append(f"late ({limit:.2f})")
    if happy["most_syns"] > max(1, bare["most_syns"], calm["most_syns"]) and name not in ENDLESS:
        found.append(f"SYNs {happy['syns']}")
    return found


def text_of(result, found):
    """A cell."""
    def one(run):
        return f"{run['seconds']:.2f}" if run["seconds"] is not None else f">{CUT_OFF_S}"
    return f"{one(result['bare'])}/{one(result['happy'])} {result['happy']['family']}{' ' if found else ''}{', '.join(found)}"


def compile_java():
    """Once, so that the compiler's seconds are not measured."""
    if (JAVA / "Get.class").exists() or not shutil.which("java"):
        return
    JAVA.mkdir(parents=True, exist_ok=True)
    (JAVA / "Get.java").write_text(JAVA_SOURCE, encoding="ascii")
    subprocess.run(["javac", "-d", str(JAVA), str(JAVA / "Get.java")], check=True)


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description="Programs in broken networks, bare and with libhappy.")
    parser.add_argument("faults", metavar="FAULT", nargs="*", help=f"of {', '.join(FAULTS)} (all)")
    parser.add_argument("--short", action="store_true", help=f"only healthy, {', '.join(SHORT)}")
    parser.add_argument("--programs", help="only these, separated by commas")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.programs.split(",") if arguments.programs else list(PROGRAMS)
    for given, known, what in ((names, PROGRAMS, "program"), (arguments.faults, FAULTS, "fault")):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"no {what} is called '{unknown[0]}'; there are {', '.join(known)}")
    if arguments.inside:
        network = lab.Lab(LOGS / arguments.inside / arguments.folder, arguments.inside)
        results = {}
        for begin in range(0, len(names), AT_ONCE):
            results.update(measure(network, names[begin:begin + AT_ONCE]))
        print(json.dumps(results), flush=True)
        return 0
    compile_java()
    absent = [name for name in names if not shutil.which(PROGRAMS[name][0][0])]
    if trouble := lab.obstacle():
        print(f"matrix: {trouble}", file=sys.stderr)
        return 1
    shutil.rmtree(LOGS, ignore_errors=True)
    names = [name for name in names if name not in absent]
    began, failed, healthy = time.monotonic(), 0, {}
    for fault in dict.fromkeys(["healthy", *(arguments.faults or (SHORT if arguments.short else FAULTS))]):
        fault_began, results = time.monotonic(), run_fault(fault, names)
        healthy = healthy or results
        found = {name: troubles(name, fault, results[name], healthy[name]) for name in names}
        for again in range(1, TRIES):
            wrong = [name for name in names if found[name]]
            if wrong:
                results.update(run_fault(fault, wrong, f"-again{again}"))
                found.update({name: troubles(name, fault, results[name], healthy[name]) for name in wrong})
        for name in names:
            pivot.collect([pivot.MARK + json.dumps(["seconds to accept(), bare/libhappy", name, fault,
                                                    text_of(results[name], found[name])])])
        wrong = [f"{name} ({', '.join(found[name])})" for name in names if found[name]]
        failed += len(wrong)
        print(f"{fault}: {time.monotonic() - fault_began:.0f} s, {len(names) - len(wrong)} of {len(names)} as wanted"
              f"{': wrong ' if wrong else ''}{'; '.join(wrong)}", flush=True)
    pivot.show()
    print(f"{len(names)} programs, {failed} cells wrong, {time.monotonic() - began:.0f} s" +
          (f"; not installed: {' '.join(absent)}" if absent else ""))
    return 1 if failed or absent else 0


if __name__ == "__main__":
    sys.exit(main())
