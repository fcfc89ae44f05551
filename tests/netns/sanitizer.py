"""Cases with a sanitized library (make SAN=address,undefined netns, make SAN=thread netns).

A sanitizer changes the programs too: some hang or fail below its runtime, all start later, and malloc() is another one.
So a case that fails is run again with the control: the same runtime, and above it the same library without a sanitizer.
If that fails as well the case cannot tell anything and is not counted; what the first run failed of is libhappy's
otherwise. A report of the sanitizer counts, unless there is one below the control too.

Kinds of which that is known:
  programs that hang or end early below the runtime (curl, lftp, aria2c, msmtp, psql; php wants RTLD_DEEPBIND)
  victims with a malloc() or a limit of memory of their own, and other allocators
  starts of programs within a time that a sanitized start takes alone
  what happens 2 ms after connect() was called: no cases at all below a sanitizer, where it is not in the kernel by then
  signal handlers under ThreadSanitizer, which keeps them back until connect() has returned
  threads that are cancelled in getaddrinfo(), of which ThreadSanitizer expects that it returns
"""

import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
_GIVEN = os.environ.get("HAPPY_LIB", str(ROOT / "build/libhappy.so"))
CONTROL_VARIABLE = "HAPPY_TEST_CONTROL"
_CONTROL = os.environ.get(CONTROL_VARIABLE) == "1"
# Its handlers of crashes can interrupt one another, so that libhappy could never be sure that none is running, and would
# take in no late answer. A crash shows as the program's end all the same.
_NO_HANDLERS = "handle_segv=0 handle_sigbus=0 handle_sigfpe=0 handle_sigill=0"
# The runtime of each build folder, and its options. What the programs themselves leak, threads among it, and how they
# share descriptors between threads, is none of our business; ends are timed, so that none may be put off.
_RUNTIMES = {
    "asan-ubsan": ("libasan.so", {"ASAN_OPTIONS": f"detect_leaks=0 {_NO_HANDLERS}", "UBSAN_OPTIONS": "print_stacktrace=1"}),
    "tsan": ("libtsan.so", {"TSAN_OPTIONS": "die_after_fork=0 report_thread_leaks=0 atexit_sleep_ms=0 "
                                            f"{_NO_HANDLERS} suppressions={HERE / 'tsan.supp'}"}),
}
_RUNTIME = _RUNTIMES.get(pathlib.Path(_GIVEN).parent.name)
USED = _RUNTIME is not None
LIBRARY = str(ROOT / "build/control/libhappy.so") if USED and _CONTROL else _GIVEN
TIME_FACTOR = 3 if USED else 1  # of the hard limits
START_S = 0.7 if USED else 0  # by which a program starts later
REPORT = ".report"
# Programs that are not compiled for the sanitizer and whose threads agree by atomics that it does not see. Where the
# runtime names the functions of such a race it calls close() with its own lock held; a race that it takes that hook for
# would be reported, too, by the thread that has the lock (4 of 100 exchanges by Node hung in this way, all with that
# stack; 0 of 120 without the names).
RACING_PROGRAMS = ("node",)


def runtime():
    """The runtime, which must be the first in every process, as a list of paths; empty without a sanitizer."""
    if not USED:
        return []
    asked = subprocess.run(["gcc", f"-print-file-name={_RUNTIME[0]}"], capture_output=True, text=True, check=True)
    return [asked.stdout.strip()]


def preload(*libraries):
    """LD_PRELOAD with these libraries."""
    return {"LD_PRELOAD": ":".join(map(str, [*runtime(), *libraries]))}


def options(log, program):
    """What the runtime is told; its reports go to files whose names begin with `log`."""
    more = " symbolize=0 exitcode=0" if pathlib.Path(program).name in RACING_PROGRAMS else ""
    return {name: f"{value}{more} log_path={log}{REPORT}".replace(" ", ":")
            for name, value in (_RUNTIME[1] if USED else {}).items()}


def _is_of_racing_program(report):
    """A race in which no frame is libhappy's, of a program that is known for them."""
    text = report.read_text(encoding="utf-8", errors="replace")
    return "ThreadSanitizer: data race" in text and "(libhappy" not in text and any(f"-{p}." in report.name for p in RACING_PROGRAMS)


def reports(folder, case):
    """The reports of the programs of a case, by file name. `case` is empty where it has the folder to itself."""
    found = pathlib.Path(folder).glob(f"{case}*{REPORT}.*")
    return sorted(path.name for path in found if not _is_of_racing_program(path))
