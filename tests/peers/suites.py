"""Other people's suites: how each is run, and what it says about its tests."""

import os
import pathlib
import re
import shutil
import xml.etree.ElementTree
from dataclasses import dataclass
from typing import Callable

# The one whose suite is installed.
PYTHON = next((f"/usr/bin/{folder.parent.name}" for folder in pathlib.Path("/usr/lib").glob("python3.*/test")
               if (folder / "test_socket.py").exists()), "/usr/bin/python3")
OPENSSH = pathlib.Path("/usr/lib/openssh/regress")
GLIB = pathlib.Path("/usr/libexec/installed-tests/glib")


@dataclass(frozen=True)
class Suite:
    """One program run. `command(folder)` may prepare the folder; `outcomes(folder, status, output)` gives what became
    of each test, by name: "ok", "skipped: why", or anything else for a failure."""

    group: str
    name: str
    command: Callable
    outcomes: Callable
    seconds: int  # cut off after; several times what it needs on an idle machine
    short: bool = False  # part of PEERS=short

    def title(self):
        """As it is selected and shown."""
        return f"{self.group}/{self.name}"


# ---- CPython's ----

# Left out: the VSOCK tests want the other end on the host of this virtual machine.
_CPYTHON_OPTIONS = ("-m", "test", "-v", "-i", "*VSOCK*")


# "network" is what it calls a server of its own on the loopback.
_CPYTHON_RESOURCES = {"test_socketserver": ("-u", "network")}


def _cpython_command(name):
    def command(folder):
        options = _CPYTHON_OPTIONS + _CPYTHON_RESOURCES.get(name, ())
        return [PYTHON, *options, "--junit-xml", str(folder / "results.xml"), "--tempdir", str(folder), name]

    return command


def _cpython_outcome(case):
    for kind in ("error", "failure"):
        found = case.find(kind)
        if found is not None:
            return f"{kind}: {(found.text or found.get('message') or '?').strip().splitlines()[-1]}"
    skipped = case.find("skipped")
    return "ok" if skipped is None else f"skipped: {(skipped.text or '').strip()}"


def _cpython_outcomes(folder, status, output):
    outcomes = {"exit status": "ok" if status == 0 else f"{status}"}
    altered = re.findall(r"^Warning -- (.*)$", output, re.MULTILINE)
    if altered:  # fds, threads, or variables of the environment that tests left behind
        outcomes["left behind"] = "; ".join(sorted(set(re.sub(r"\d+", "N", line) for line in altered)))
    try:
        tree = xml.etree.ElementTree.parse(folder / "results.xml")
    except (OSError, xml.etree.ElementTree.ParseError):
        return outcomes
    outcomes.update({case.get("name"): _cpython_outcome(case) for case in tree.iter("testcase")})
    return outcomes


def _has(name):
    """Whether that Python has these tests; 3.13 has no telnetlib any more."""
    return pathlib.Path("/usr/lib", pathlib.Path(PYTHON).name, "test", f"{name}.py").exists()


def _cpython(name, seconds, short=False):
    return Suite("cpython", name, _cpython_command(name), _cpython_outcomes, seconds, short)


# ---- OpenSSH's ----

# As /usr/lib/openssh/regress/run-tests has them, which runs all tests or none. It says SUDO=sudo: we are root, and
# env keeps LD_PRELOAD, so that sshd too is tested with the library.
_OPENSSH_SETTINGS = (
    "SUDO=env", "TEST_SHELL=sh", "TEST_SSH_SSH=ssh", "TEST_SSH_SFTPSERVER=/usr/lib/openssh/sftp-server",
    "TEST_SSH_PLINK=plink", "TEST_SSH_PUTTYGEN=puttygen", "TEST_SSH_CONCH=conch3", "TEST_SSH_IPV6=yes",
    "TEST_SSH_ECC=yes", "TEST_SSH_UNSAFE_PERMISSIONS=1")


def _openssh_command(test):
    def command(folder):
        work = folder / "regress"
        shutil.copytree(OPENSSH, work, symlinks=True)
        places = [f"{name}={work}" for name in (".OBJDIR", ".CURDIR", "BUILDDIR", "OBJ")]
        os.makedirs("/run/sshd", exist_ok=True)
        return ["make", "-C", str(work), *places, *_OPENSSH_SETTINGS, "t-exec", f"LTESTS={test}"]

    return command


def _openssh_outcomes(_, status, output):
    skipped = re.search(r"^SKIPPED: (.*)", output, re.MULTILINE)
    if status == 0:
        return {"test": f"skipped: {skipped.group(1)}" if skipped else "ok"}
    failures = re.findall(r"^(?:FAIL|FATAL): *(.*)", output, re.MULTILINE)
    return {"test": "; ".join(sorted(set(failures))) or f"exit status {status}"}


def _openssh(name, seconds, short=False):
    return Suite("openssh", name, _openssh_command(name), _openssh_outcomes, seconds, short)


# ---- stress-ng's ----


def _stress_command(name, seconds):
    def command(folder):
        return ["stress-ng", "--temp-path", str(folder), f"--{name}", "1", "--verify", "--timeout", f"{seconds}s"]

    return command


def _stress_outcomes(_, status, output):
    complaints = re.findall(r"stress-ng: (?:fail|error): *\[\d+\] (.*)", output)
    return {"test": "ok" if status == 0 and not complaints else "; ".join(
        sorted(set(re.sub(r"\d+", "N", line) for line in complaints))) or f"exit status {status}"}


def _stress(name, short=False):
    return Suite("stress-ng", name, _stress_command(name, 3), _stress_outcomes, 40, short)


# ---- GLib's ----

# Beside libhappy, as it would be beside another library: its connect() is a slow one.
_SLOW_CONNECT = f"LD_PRELOAD=${{LD_PRELOAD:+$LD_PRELOAD:}}{GLIB}/slow-connect-preload.so exec "


def _glib_command(name):
    before = _SLOW_CONNECT if name == "gsocketclient-slow" else "exec "
    return lambda _: ["sh", "-c", f"{before}{GLIB / name} --tap"]


def _glib_outcomes(_, status, output):
    outcomes = {"exit status": "ok" if status == 0 else f"{status}"}
    for verdict, name, why in re.findall(r"^((?:not )?ok) \d+ (\S+)(?: # SKIP(.*))?", output, re.MULTILINE):
        outcomes[name] = f"skipped: {why.strip()}" if why else verdict
    return outcomes


def _glib(name, short=False):
    return Suite("glib", name, _glib_command(name), _glib_outcomes, 60, short)


TABLE = (
    _cpython("test_socket", 240, short=True),
    _cpython("test_ssl", 240),
    _cpython("test_ftplib", 120, short=True),
    _cpython("test_smtplib", 120, short=True),
    _cpython("test_poplib", 120, short=True),
    _cpython("test_imaplib", 240),
    _cpython("test_httplib", 120, short=True),
    _cpython("test_urllib2_localnet", 120, short=True),
    *(_cpython(name, 120, short=True) for name in ("test_telnetlib",) if _has(name)),
    _cpython("test_subprocess", 240),
    _cpython("test_asyncio", 600),  # 90 s by itself
    *(_cpython(name, 120, short=True) for name in ("test_selectors", "test_epoll", "test_poll")),
    _cpython("test_socketserver", 120, short=True),
    *(_stress(name, short=True) for name in (
        "sock", "sockmany", "sockfd", "close", "dup", "fork", "vfork", "clone", "epoll", "poll")),
    *(_glib(name, short=True) for name in (
        "socket", "socket-address", "socket-listener", "socket-service", "gsocketclient-slow", "network-address",
        "inet-address", "network-monitor", "network-monitor-race", "proxy-test", "pollable", "resolver-parsing",
        "gdbus-peer", "gdbus-non-socket", "unix-streams", "unix-fd")),
    _glib("mainloop"),
    *(_openssh(name, 60, short=True) for name in (
        "connect", "proxy-connect", "connect-uri", "proto-version", "proto-mismatch", "exit-status-signal", "yes-head",
        "scp-uri", "sftp-chroot", "keyscan")),
    _openssh("forward-control", 600),  # 100 s by itself: every kind of forwarding under every setting
    *(_openssh(name, 240) for name in (
        "connect-privsep", "broken-pipe", "banner", "exit-status", "envpass", "transfer", "stderr-data", "stderr-after-eof", "login-timeout", "agent",
        "agent-subprocess", "key-options", "scp", "sftp", "reconfigure", "dynamic-forward", "forwarding", "multiplex",
        "reexec", "cfgmatchlisten", "channel-timeout", "connection-timeout",
        "allow-deny-users", "keys-command", "localcommand", "forcecommand")),
)
