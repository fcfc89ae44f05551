"""Larger programs with a part of their own for each connection: nginx as a proxy, apt-get with a repository."""

import hashlib
import pathlib
import re
import time

import hardening
import topology
from cases import REGISTRY, Case, check, check_equal, families
from lab import PYTHON, LabError
from tcp_server import IPV6_TRANSPARENT

PORTS = {"bare": 8001, "happy": 8002}
START_SECONDS = 10  # 0.1 s on an idle machine

# -- nginx --

NGINX = """
daemon off; user root; pid {folder}/pid; error_log stderr; worker_processes 1;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    proxy_connect_timeout 3s;
    server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{name}; }} }}
}}
"""


def start_nginx(network, kind, host):
    """A proxy in the client, on a port of the loopback."""
    folder = pathlib.Path("/run/lab/nginx", kind)
    folder.mkdir(parents=True)
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=PORTS[kind], name=host.name), encoding="ascii")
    nginx = network.start(["/usr/sbin/nginx", "-p", folder, "-c", config], happy=kind == "happy")
    end = time.monotonic() + START_SECONDS
    while network.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{PORTS[kind]}"]).status != 0:
        if time.monotonic() > end or nginx.ended_within(0):
            raise LabError(f"nginx does not start: {nginx.output_path.read_text()!r}")
    return nginx


def proxied(network, fault, limit_s, bare_limits_s):
    """The first request reaches the live address as soon as another program's would."""
    hosts = {kind: network.host(kind) for kind in PORTS}
    daemons = {kind: start_nginx(network, kind, host) for kind, host in hosts.items()}
    seconds, shown = {}, []
    for kind, host in hosts.items():
        run = network.run(["curl", "-s", f"http://127.0.0.1:{PORTS[kind]}/"])
        check_equal((run.status, run.output), (0, "hello\n"), f"{kind}: what curl got")
        seconds[kind] = run.seconds()
        shown.append(f"{run.seconds():.2f} s over IPv{families(network.accepts(host))}")
    hardening.tell(f"nginx, a proxy, {fault}", *shown, True)
    low, high = bare_limits_s
    check(low <= seconds["bare"] <= high, f"bare: {seconds['bare']:.2f} s")
    check(seconds["happy"] <= limit_s, f"{seconds['happy']:.2f} s")
    check(not any(daemon.ended_within(0) for daemon in daemons.values()), "a daemon has ended")


for fault, limit_s, bare_limits_s in (("healthy", 0.6, (0, 0.6)), ("v6-drop", 0.9, (2.9, 5)), ("v6-reset", 0.6, (0, 0.6))):
    REGISTRY[f"nginx_proxy.{fault}"] = Case(proxied, (fault,), (fault, limit_s, bare_limits_s))

# -- apt-get --

REPOSITORY_PORT = 8000
IPV4_ALONE, BOTH_FAMILIES = "0.0.0.0", "::"
# Any address is this server's, of one family or both.
REPOSITORY_SERVER = f"""
import functools, http.server, socket, sys
directory, where = sys.argv[1:]
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in where else socket.AF_INET
    def server_bind(self):
        if ":" in where:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            self.socket.setsockopt(socket.IPPROTO_IPV6, {IPV6_TRANSPARENT}, 1)
        self.socket.setsockopt(socket.SOL_IP, socket.IP_TRANSPARENT, 1)
        super().server_bind()
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection for all files
server = Server((where, {REPOSITORY_PORT}), functools.partial(Handler, directory=directory))
print("ready", flush=True)
server.serve_forever()
"""
CONTROL = """Package: lab-package
Version: 1.0
Architecture: all
Maintainer: lab <lab@lab.test>
Description: nothing
"""


def make_repository(folder):
    """One package, and the list of it."""
    tree = folder / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(CONTROL, encoding="ascii")
    package = folder / "files/lab-package.deb"
    package.parent.mkdir()
    topology.call("dpkg-deb", "--root-owner-group", "-b", tree, package)
    data = package.read_bytes()
    entry = CONTROL + f"Filename: ./{package.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
    (package.parent / "Packages").write_text(entry, encoding="ascii")
    return package.parent


def start_repository(network, folder, where=IPV4_ALONE):
    """Serves one package in the servers' namespace, at every address; ready when this returns."""
    server = network.start([PYTHON, "-c", REPOSITORY_SERVER, make_repository(folder), where], namespace="s")
    end = time.monotonic() + START_SECONDS
    while "ready" not in server.output_path.read_text():
        if time.monotonic() > end:
            raise LabError(f"no repository: {server.output_path.read_text()!r}")
        time.sleep(0.02)


def apt(folder, url, *more_options):
    """apt-get in folders of its own: the list is fetched, then the package."""
    for name in ("etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache/archives/partial", "out"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "etc/sources.list").write_text(f"deb [trusted=yes] {url} ./\n", encoding="ascii")
    options = " ".join(f"-o{option}" for option in (
        f"Dir::Etc={folder}/etc", f"Dir::State={folder}/state", f"Dir::State::status={folder}/status",
        f"Dir::Cache={folder}/cache", "APT::Sandbox::User=root", "Acquire::Retries=0", "Acquire::Languages=none",
        *more_options))
    return ["sh", "-ec", f"cd {folder}/out; apt-get {options} update; apt-get {options} download lab-package; ls"]


def fetched(network, fault, more_s, bare_seconds):
    """apt-get gets the package with libhappy, not later than bare, and in the time that the fault costs."""
    folder = pathlib.Path("/run/lab/apt")
    start_repository(network, folder)
    hosts = {kind: network.host(kind) for kind in PORTS}
    programs = {kind: network.start(apt(folder / kind, f"http://{host.name}:{REPOSITORY_PORT}"), happy=kind == "happy")
                for kind, host in hosts.items()}
    run = programs["happy"].wait(12)
    bare = programs["bare"].wait(bare_seconds)
    shown = [f"status {each.status}, {each.seconds():.1f} s" for each in (bare, run)]
    hardening.tell(f"apt-get update and download, {fault}", *shown, True)
    check(run.status == 0 and "lab-package_1.0_all.deb" in run.output, f"{shown[1]}: {run.output[-500:]}")
    check(not re.search(r"^[WE]:", run.output, re.MULTILINE), f"complaints: {run.output[-500:]}")
    check(bare.status is None or run.seconds() < bare.seconds() + 1, f"later than bare: {shown}")
    check(run.seconds() < 4 + more_s, f"{shown[1]}")


# A lost AAAA costs it bare libc's 15 s, and again for each file.
for fault, more_s, bare_seconds in (("healthy", 0, 12), ("v6-drop", 1, 12), ("aaaa-silent", 0.5, 3)):
    REGISTRY[f"apt_get_repository.{fault}"] = Case(fetched, (fault,), (fault, more_s, bare_seconds), seconds=60)
