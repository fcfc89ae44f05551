"""What is loaded, and what never: privileged programs, engines of others, chroot, allocators, early and late calls."""

import ctypes
import os
import pathlib
import shutil
import struct
import subprocess

import hardening
import lab
import sanitizer
from cases import REGISTRY, Case, case, check, check_equal, victim

ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}  # one dead address takes 3 s
BUILT = pathlib.Path(lab.LIBRARY).parent
PRIVATE = pathlib.Path("/run/lab/trust")  # a copy of both libraries, for each case to spoil
PLANTED = "/run/lab/planted"  # exists once planted code has run
ENGINE = "libhappy-engine.so"
NOBODY = 65534


def compile_library(source, target, *flags):
    """Builds one of preloads/ as a shared library."""
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", *flags, "-o", str(target), str(lab.HERE / "preloads" / source)],
                   check=True)


def private_copy(folder=PRIVATE):
    """Both libraries in a folder of the case's own."""
    folder.mkdir(parents=True)
    for name in ("libhappy.so", ENGINE):
        shutil.copy(BUILT / name, folder / name)
    return folder / "libhappy.so"


def plant(target):
    """An engine of somebody else's."""
    compile_library("planted.c", target, f'-DPLANTED="{PLANTED}"')


def planted_code_ran():
    """Whether it was loaded."""
    return os.path.exists(PLANTED)


def command(*arguments):
    """The victim that says what is loaded."""
    return lambda host: victim("loads", *arguments, host.name, 7)


def preload(*libraries):
    """The environment of both runs; libhappy is added in one of them."""
    return sanitizer.preload(*libraries)


# -- trust --


def other_owner(engine):
    """Belongs to somebody else."""
    plant(engine)
    os.chown(engine, NOBODY, NOBODY)


def world_writable(engine):
    """Anybody could have written it."""
    plant(engine)
    engine.chmod(0o666)


def group_writable(engine):
    """A group could have written it that could not have written libhappy.so."""
    plant(engine)
    os.chown(engine, 0, NOBODY)
    engine.chmod(0o664)


def symlink(engine):
    """Leads somewhere else."""
    plant(engine.with_name("elsewhere.so"))
    engine.symlink_to("elsewhere.so")


def directory(engine):
    """Is none."""
    engine.mkdir()


def fifo(engine):
    """Would block."""
    os.mkfifo(engine)


def missing(engine):
    """Is not there."""
    engine.unlink(missing_ok=True)


def garbage(engine):
    """Is no library."""
    engine.write_bytes(b"\x7fELF" + bytes(4096))


def truncated(engine):
    """Is half a library."""
    engine.write_bytes((BUILT / ENGINE).read_bytes()[:20000])


SPOILERS = (other_owner, world_writable, group_writable, symlink, directory, fifo, missing, garbage, truncated)


def untrusted_engine(network, spoil):
    """An engine that is not to be trusted is not loaded, and the program ends as bare."""
    library = private_copy()
    engine = library.with_name(ENGINE)
    engine.unlink()
    spoil(engine)
    hosts = [network.host(label) for label in ("bare", "happy")]
    bare, happy = (network.start(command("plain", "-")(host), environment=environment)
                   for host, environment in zip(hosts, ({}, preload(library))))
    bare, happy = bare.wait(20), happy.wait(20)
    hardening.judge(f"engine: {spoil.__name__.replace('_', ' ')}", hosts, bare, happy)
    check(not planted_code_ran(), "planted code ran")
    check_equal(hardening.said(happy, "at_engine_mapped"), "0", "engine mapped")


for spoiler in SPOILERS:
    REGISTRY[f"engine_{spoiler.__name__}"] = Case(untrusted_engine, ("v6-drop",), (spoiler,), lab_options=ONE_RETRY)


@case("v6-drop", **ONE_RETRY)
def engine_planted_runs_where_trusted(network):
    """The test of the test: the same file, with the right owner and mode, is loaded."""
    library = private_copy()
    plant(library.with_name(ENGINE))
    network.run(command("plain", "-")(network.host("trusted")), environment=preload(library))
    check(planted_code_ran(), "planted code was not run")


@case("v6-drop", **ONE_RETRY)
def engine_of_another_build(network):
    """While an installed copy is being replaced the engine may be the other one's: it is not used."""
    library = private_copy()
    library.with_name(ENGINE).unlink()
    compile_library("other_build.c", library.with_name(ENGINE))
    hosts = [network.host(label) for label in ("bare", "happy")]
    bare, happy = (network.start(command("plain", "-")(host), environment=environment)
                   for host, environment in zip(hosts, ({}, preload(library))))
    bare, happy = bare.wait(20), happy.wait(20)
    hardening.judge("engine: of another build", hosts, bare, happy)
    check_equal(hardening.said(happy, "at_engine_mapped"), "1", "engine mapped")


@case("v6-drop", **ONE_RETRY)
def engine_after_replacement(network):
    """libhappy.so and engine replaced while the program runs (an upgrade, or an attack): no engine is loaded."""
    library = private_copy()
    hosts = [network.host(label) for label in ("bare", "happy")]
    runs = [network.start(command("pause", f"/run/lab/{host.name}")(host), environment=environment)
            for host, environment in zip(hosts, ({}, preload(library)))]
    for host in hosts:
        network.run(["sh", "-c", f"while ! [ -e /run/lab/{host.name} ]; do sleep 0.02; done"])
    shutil.copy(BUILT / "libhappy.so", PRIVATE / "new.so")
    (PRIVATE / "new.so").rename(library)
    plant(PRIVATE / "new.so")
    (PRIVATE / "new.so").rename(library.with_name(ENGINE))
    for host in hosts:
        pathlib.Path(f"/run/lab/{host.name}.go").touch()
    bare, happy = (run.wait(20) for run in runs)
    hardening.judge("libhappy.so replaced after start", hosts, bare, happy)
    check(not planted_code_ran(), "planted code ran")


# -- chroot --


def make_root(proc):
    """A root directory with what a lookup needs and, under the library's own path, a planted engine."""
    root = pathlib.Path("/run/lab/root")
    (root / "etc").mkdir(parents=True)
    for name in ("resolv.conf", "nsswitch.conf", "hosts", "services"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    inside = root / str(PRIVATE).lstrip("/")
    inside.mkdir(parents=True)
    shutil.copy(BUILT / "libhappy.so", inside / "libhappy.so")
    plant(inside / ENGINE)
    (root / "proc").mkdir()
    (root / "run/lab").mkdir(exist_ok=True)
    if proc:
        subprocess.run(["mount", "--bind", "/proc", str(root / "proc")], check=True)
    return root, inside


def chrooted(network, what, proc, same_file):
    """A chroot with a planted engine is not entered."""
    library = private_copy()
    root, inside = make_root(proc)
    if same_file:  # libhappy.so is the very file, the engine beside it belongs to the owner of the directory
        subprocess.run(["mount", "--bind", str(library), str(inside / "libhappy.so")], check=True)
        os.chown(inside / ENGINE, NOBODY, NOBODY)
    hosts = [network.host(label) for label in ("bare", "happy")]
    bare, happy = (network.start(command(what, root)(host), environment=environment)
                   for host, environment in zip(hosts, ({}, preload(library))))
    bare, happy = bare.wait(30), happy.wait(30)
    hardening.judge(f"{what}{', /proc' if proc else ''}{', same file' if same_file else ''}", hosts, bare, happy,
                    sooner=True)
    check(not planted_code_ran() and not (root / PLANTED.lstrip("/")).exists(), "planted code ran")


for what in ("chroot", "chroot-late"):
    for proc in (False, True):
        for same_file in (False, True):
            name = f"{what.replace('-', '_')}{'_proc' if proc else ''}{'_same_file' if same_file else ''}"
            REGISTRY[name] = Case(chrooted, ("v6-drop",), (what, proc, same_file), lab_options=ONE_RETRY)

# -- AT_SECURE --

IN_OPEN, IN_NONBLOCK = 0x20, 0o4000


def watch_opens(folder):
    """An inotify fd that hears of every open() in a folder."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(IN_NONBLOCK)
    check(fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(folder), IN_OPEN) >= 0, "inotify")
    return fd


def opened_names(fd):
    """The names opened since, without repetition."""
    names, data = set(), b""
    try:
        data = os.read(fd, 65536)
    except BlockingIOError:
        pass
    while data:
        length = struct.unpack_from("iIII", data)[3]
        names.add(data[16:16 + length].rstrip(b"\0").decode())
        data = data[16 + length:]
    return names


def preload_everywhere(library):
    """/etc/ld.so.preload, in this case's own mount namespace: the one way into privileged programs."""
    for name in ("upper", "work"):
        os.makedirs(f"/run/lab/etc-{name}")
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                    "lowerdir=/etc,upperdir=/run/lab/etc-upper,workdir=/run/lab/etc-work", "/etc"], check=True)
    for name in ("resolv.conf", "nsswitch.conf", "hosts"):  # bind-mounted files are not part of the lower layer
        if os.path.exists(f"/run/lab/{name}"):
            shutil.copy(f"/run/lab/{name}", f"/etc/{name}")
    pathlib.Path("/etc/ld.so.preload").write_text("\n".join(map(str, [*sanitizer.runtime(), library, ""])), encoding="ascii")


def privileged_copy(how):
    """The victim, set-uid root or with a file capability."""
    path = pathlib.Path(f"/run/lab/privileged-{how}")
    shutil.copy(victim("loads")[0], path)
    path.chmod(0o4755 if how == "setuid" else 0o755)
    if how == "capability":  # cap_net_raw, effective and permitted
        os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
    return path


def at_secure(network, how):
    """Set-uid and file-capability programs under ld.so.preload: no engine, no file, no thread."""
    library = private_copy()
    program = privileged_copy(how)
    hosts = [network.host(label) for label in ("bare", "happy")]

    def run(host, environment):
        return network.start(["setpriv", f"--reuid={NOBODY}", "--clear-groups", program, "plain", "-", host.name, "7"],
                             environment=environment).wait(20)

    trace = pathlib.Path("/run/lab/world/trace")
    trace.parent.mkdir()
    trace.parent.chmod(0o777)
    bare = run(hosts[0], {})
    preload_everywhere(library)
    watch = watch_opens(PRIVATE)
    happy = run(hosts[1], {"HAPPY_TRACE": str(trace)})
    opened = opened_names(watch)
    check_equal(hardening.said(bare, "secure"), "1", "AT_SECURE, bare")
    hardening.judge(f"AT_SECURE by {how}", hosts, bare, happy)
    check_equal(hardening.said(happy, "at_shim_mapped"), "1", "libhappy.so mapped")
    check_equal(hardening.said(happy, "at_engine_mapped"), "0", "engine mapped")
    check_equal(opened, {"libhappy.so"}, "files opened beside the library")
    lines = trace.read_text(encoding="ascii") if trace.exists() else ""
    check(f'"uid":0' not in lines and str(program) not in lines, "traced")


@case("v6-drop", **ONE_RETRY)
def at_secure_setuid(network):
    """Set-uid root."""
    at_secure(network, "setuid")


@case("v6-drop", **ONE_RETRY)
def at_secure_capability(network):
    """A file capability."""
    at_secure(network, "capability")


@case("v6-drop", **ONE_RETRY)
def ld_so_preload_ordinary_program(network):
    """The test of the test: an ordinary program under the same ld.so.preload is helped."""
    preload_everywhere(private_copy())
    happy = network.run(command("plain", "-")(network.host("ordinary")))
    check_equal(hardening.said(happy, "at_engine_mapped"), "1", "engine mapped")


# -- other libraries --

ALLOCATORS = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4")


def with_allocator(network, allocator, first):
    """Another malloc, before and after libhappy."""
    order = [allocator, lab.LIBRARY] if first else [lab.LIBRARY, allocator]
    script = "import socket,sys\nfor i in range(20): socket.create_connection((sys.argv[1],7)).close()\nprint('done')"
    for make in (command("plain", "-"), lambda host: ["/usr/bin/python3", "-c", script, host.name]):
        hosts = [network.host(label) for label in ("bare", "happy")]
        bare, happy = (network.run(make(host), environment=preload(*libraries), seconds=25)
                       for host, libraries in zip(hosts, ((allocator,), order)))
        hardening.judge(f"{allocator} {'before' if first else 'after'} libhappy", hosts, bare, happy, slack_s=1.5)


for allocator in ALLOCATORS:
    for first in (True, False):
        REGISTRY[f"allocator_{allocator.split('.')[0]}_{'before' if first else 'after'}"] = Case(
            with_allocator, ("v6-reset",), (allocator, first), seconds=60)


def early_calls(network, order):
    """A preloaded library whose constructor connects and looks up before libhappy's has run, or after it."""
    hosts = [network.host(label) for label in ("bare", "happy")]
    runs = []
    for host in hosts:
        early = pathlib.Path(f"/run/lab/early-{host.name}.so")
        compile_library("early.c", early, f'-DNAME="{host.name}"')
        libraries = [early] if host is hosts[0] else {"before": [lab.LIBRARY, early], "after": [early, lab.LIBRARY]}[order]
        runs.append(network.start(victim("walk", host.name, 7), environment=preload(*libraries)))
    bare, happy = (run.wait(20) for run in runs)
    hardening.judge(f"calls from a constructor, {order} libhappy's", hosts, bare, happy)


for order in ("before", "after"):
    REGISTRY[f"early_calls_{order}"] = Case(early_calls, (), (order,))


@case("v6-drop", **ONE_RETRY)
def module_loaded_by_dlopen(network):
    """A module that is loaded late is hooked like the rest."""
    module = pathlib.Path("/run/lab/module.so")
    compile_library("module.c", module)
    _, _, happy = hardening.compare(network, "a module's connect()", command("dlopen", module), sooner=True)
    check(happy.seconds() < 1, f"{happy.seconds()} s")


@case()
def constructor_that_waits(network):
    """A thread's first calls, while another holds the loader's lock and waits for it. (A lookup waits half a second.)"""
    module = pathlib.Path("/run/lab/waits.so")
    compile_library("waits.c", module)
    hardening.compare(network, "a module whose constructor waits for its thread", command("late", module),
                      slack_s=3)  # our thread stays for one, and a lookup waits for half a second, once


@case("v6-drop", **ONE_RETRY)
def address_sanitizer(network):
    """Its runtime wants to be a program's first library, and reads the options of whoever is preloaded beside libhappy."""
    walk = pathlib.Path("/run/lab/walk")
    subprocess.run(["cc", "-fsanitize=address", "-D_GNU_SOURCE", "-o", walk, lab.HERE / "victims/walk.c"], check=True)
    hardening.compare_result(network, "AddressSanitizer", lambda host: [walk, host.name, 7],
                             environment={"ASAN_OPTIONS": "detect_leaks=0"})
    traced = network.start([walk, network.host("traced").name, 7], happy=True, environment={"ASAN_OPTIONS": "detect_leaks=0"})
    check_equal(traced.wait(20).status, 0, "status")
    check("lookups_left" not in traced.trace.read_text(), "lookups are left to the runtime's getaddrinfo()")
    others = pathlib.Path("/run/lab/asan_options.so")
    compile_library("asan_options.c", others)
    told = network.run([walk, network.host("told").name, 7], environment=preload(lab.LIBRARY, others)).output
    check("AddressSanitizer Init done" in told, f"options of the library behind are unread: {told!r}")


@case()
def first_calls_of_children(network):
    """Forked while another thread is in dl_iterate_phdr(): its lock is held for ever in the child."""
    hardening.compare(network, "children's first calls", lambda _: victim("first_calls"), slack_s=3)


@case("v6-drop", **ONE_RETRY)
def engine_name_for_debuggers(network):
    """The name by which the engine is loaded leads others to it: gdb, which opens it, would read from its own pipe else."""
    audit = pathlib.Path("/run/lab/audit.so")
    compile_library("audit.c", audit)
    happy = network.run(command("plain", "-")(network.host("debugged")), happy=True, trace=False,
                        environment={"LD_AUDIT": str(audit)})
    by_number = [line for line in happy.output.splitlines() if line.startswith("opened /proc/")]
    check(by_number and "opened /proc/self/" not in happy.output, f"names: {by_number}; output {happy.output}")


def library_loaded_late(network, how):
    """dlopen() of libhappy.so itself changes nothing."""
    hosts = [network.host(label) for label in ("bare", "happy")]
    libc = "/lib/x86_64-linux-gnu/libc.so.6"
    bare, happy = (network.start(command(how, library)(host), environment=sanitizer.preload())
                   for host, library in zip(hosts, (libc, lab.LIBRARY)))
    hardening.judge(f"libhappy.so loaded by the program, {how}", hosts, bare.wait(20), happy.wait(20))


for how in ("late", "dlclose"):
    REGISTRY[f"library_loaded_{how}"] = Case(library_loaded_late, ("v6-drop",), (how,), lab_options=ONE_RETRY)
