"""Debian's XMPP server in the lab, and unmodified clients that log in and send a message."""

import pathlib
import sys
import time

FOLDER = pathlib.Path("/run/lab/xmpp")
DOMAIN, PORT = "xmpp.test", 15222
TEXT = "hello-from-the-lab"

SERVER = f"""
pidfile = "{FOLDER}/prosody.pid"
data_path = "{FOLDER}/data"
run_as_root = true
daemonize = false
interfaces = {{ "*", "::" }}
c2s_ports = {{ {PORT} }}
s2s_ports = {{ }}
modules_enabled = {{ "roster", "saslauth", "disco", "offline", "presence", "message", "iq", "ping" }}
modules_disabled = {{ "s2s", "tls" }}
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
authentication = "internal_plain"
log = {{ info = "{FOLDER}/prosody.log" }}
VirtualHost "{DOMAIN}"
"""

# The file that each command below names, and the lines that are typed once the client shows READY.
MCABBER = f"""
set jid = alice@{DOMAIN}/lab
set password = secret
set tls = 0
set ssl_ignore_checks = 1
set hook-post-connect = source {FOLDER}/connected
"""
PROFANITY = f"""
[alice@{DOMAIN}]
enabled=true
jid=alice@{DOMAIN}
password=secret
resource=lab
tls.policy=disable
auth.policy=legacy
"""

# Runs a command on a terminal of its own and types, every half second, until it ends.
TERMINAL = """
import os, pty, select, sys, time
lines = sys.argv[1].split("|") if sys.argv[1] else []
child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[2], sys.argv[2:])
typed, shown = time.monotonic(), b""
while True:
    if select.select([terminal], [], [], 0.1)[0]:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        if not data:
            break
        shown += data
    if lines and (b"logged in" in shown or b"Connected" in shown) and time.monotonic() - typed > 0.3:
        os.write(terminal, lines.pop(0).encode() + b"\\r")
        typed = time.monotonic()
sys.stdout.buffer.write(shown[-3000:])
"""


def prepare():
    """The files of server and clients."""
    accounts = FOLDER / "data" / DOMAIN.replace(".", "%2e") / "accounts"
    accounts.mkdir(parents=True, exist_ok=True)
    for user in ("alice", "bob"):
        (accounts / f"{user}.dat").write_text('return { ["password"] = "secret"; };\n', encoding="ascii")
    (FOLDER / "prosody.cfg.lua").write_text(SERVER, encoding="ascii")
    (FOLDER / "mcabberrc").write_text(MCABBER, encoding="ascii")
    (FOLDER / "connected").write_text(f"say_to -q bob@{DOMAIN} {TEXT}\nquit\n", encoding="ascii")
    profile = pathlib.Path("/run/lab/home/.local/share/profanity")
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "accounts").write_text(PROFANITY, encoding="ascii")
    (FOLDER / "mcabberrc").chmod(0o600)


def start_server(network):
    """prosody, listening when this returns."""
    prepare()
    network.start(["/usr/bin/prosody", "--config", str(FOLDER / "prosody.cfg.lua")], namespace="s", stdin=None)
    for _ in range(200):
        if "Activated service 'c2s'" in log_text():
            return
        time.sleep(0.1)
    raise AssertionError(f"prosody does not listen: {log_text()[-500:]}")


def log_text():
    """What prosody has logged."""
    log = FOLDER / "prosody.log"
    return log.read_text(encoding="utf-8") if log.exists() else ""


def messages():
    """Messages that wait for bob."""
    stored = FOLDER / "data" / DOMAIN.replace(".", "%2e") / "offline" / "bob.list"
    return stored.read_text(encoding="utf-8").count(TEXT) if stored.exists() else 0


def client(name):
    """The command line of a client that logs in as alice and writes to bob."""
    terminal = [sys.executable, "-IS", "-c", TERMINAL]
    if name == "mcabber":
        return [*terminal, "", "mcabber", "-f", str(FOLDER / "mcabberrc")]
    return [*terminal, f"/msg bob@{DOMAIN} {TEXT}|/quit", "profanity", "-a", f"alice@{DOMAIN}"]
