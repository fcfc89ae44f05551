"""Other people's suites with libhappy, each test compared with the same test bare.

    /usr/bin/python3 tests/peers/run.py [--short] [--list] [--jobs N] [--modes MODE,...] [PATTERN ...]

Every suite runs bare and in each mode, in private namespaces where only the loopback is. A difference is looked at
twice more, bare and in that mode, side by side; one that never comes back is shown, but is no failure. One line per
suite and mode as it ends, then a table, the differences, and "N passed, N failed"; exit status 1 if one differed.
What differed stays in build/tests/peers-logs/.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/netns"))

import faults  # pylint: disable=wrong-import-position
import lab  # pylint: disable=wrong-import-position
import suites  # pylint: disable=wrong-import-position
import topology  # pylint: disable=wrong-import-position

LOGS = ROOT / "build/tests/peers-logs"
REPEATS = 2  # of a pair that differed
CUT_OFF = 124
INNER_LIBRARY, INNER_FOLDER = pathlib.Path("/run/lab/library"), pathlib.Path("/run/lab/report")


@dataclass(frozen=True)
class Mode:
    """How the library is there; `own_drop`: the lab's fault of that name."""

    name: str
    loaded: bool = True
    force: str = ""
    own_drop: bool = False
    meaning: str = ""


MODES = (
    Mode("bare", loaded=False, meaning="without libhappy"),
    Mode("loaded", meaning="with libhappy, as users have it"),
    Mode("swap", force="swap", own_drop=True,
         meaning="the program's own SYNs vanish: what connects was handed over"),
    Mode("fail:proc", force="swap,fail:proc", own_drop=True, meaning="the same without /proc"),
    Mode("fail:thread", force="swap,fail:thread", meaning="every connect wants a race, but no thread can be made"),
)


# ---- inside the namespaces ----


def hide_home():
    """root's home is an empty folder for sshd too: login shells read files there, which may start anything."""
    lines = pathlib.Path("/etc/passwd").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    fields = [line.split(":") for line in lines]
    changed = [":".join([*field[:5], topology.HOME, *field[6:]]) if field[0] == "root" else line
               for field, line in zip(fields, lines)]
    private = pathlib.Path("/run/lab/passwd")
    private.write_text("\n".join(changed) + "\n", encoding="utf-8", errors="surrogateescape")
    topology.call("mount", "--bind", private, "/etc/passwd")


def prepare(mode, folder):
    """Files and names that do not depend on this machine, the loopback, and a counter of marked SYNs. Paths under /tmp
    would collide: process ids are the same in every namespace. The library's folder and the report's may be there."""
    topology.make_private_files(())
    hide_home()
    os.chmod("/run", 0o755)  # as it is everywhere: sshd's chroot wants that
    for outer, inner in ((pathlib.Path(lab.LIBRARY).parent, INNER_LIBRARY), (folder, INNER_FOLDER)):
        inner.mkdir()
        topology.call("mount", "--bind", outer, inner)
    topology.call("mount", "-t", "tmpfs", "tmpfs", "/tmp")
    topology.call("ip", "link", "set", "lo", "up")
    drop = faults.find("own-drop").client_rules[0]
    rule = drop.replace(" drop", " counter drop" if mode.own_drop else " counter")
    topology.call("nft", "-f", "-", stdin="table inet lab {\nchain output {\n"
                  f"type filter hook output priority 0;\n{rule}\n}}\n}}\n")


def marked_syns():
    """How many SYNs of programs' own attempts were seen under HAPPY_FORCE=swap, retransmissions too."""
    listed = json.loads(subprocess.run(["nft", "-j", "list", "table", "inet", "lab"], capture_output=True, check=True,
                                       text=True).stdout)
    return sum(expression["counter"]["packets"] for entry in listed["nftables"] if "rule" in entry
               for expression in entry["rule"]["expr"] if "counter" in expression)


def environment(mode):
    """The variables that the suite gets."""
    variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": topology.HOME,
                 "LANG": "C.UTF-8", "TERM": "dumb"}
    if mode.loaded:
        variables["LD_PRELOAD"] = str(INNER_LIBRARY / pathlib.Path(lab.LIBRARY).name)
    if mode.force:
        variables["HAPPY_FORCE"] = mode.force
    return variables


def wait_as_init(pid, seconds):
    """The exit status of a child, CUT_OFF if it was killed after so long. Meanwhile ends what others leave to the first
    process of the namespace: some tests wait until a daemon's process is gone."""
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)
        if ended == 0 and time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            return CUT_OFF
        if ended == 0:
            time.sleep(0.02)


def inside(suite, mode, folder):
    """Runs the suite as a child of this process, the first of its namespaces; leaves folder/report."""
    prepare(mode, folder)
    folder = INNER_FOLDER
    work = pathlib.Path("/run/lab/work")
    work.mkdir()
    settings = [f"{key}={value}" for key, value in environment(mode).items()]
    command = ["/usr/bin/env", "-i", *settings, *suite.command(work)]
    started = time.monotonic()
    with open(folder / "output", "wb") as output, open("/dev/zero", "rb") as zeros:
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            command, stdin=zeros, stdout=output, stderr=subprocess.STDOUT, cwd=work, start_new_session=True)
        status = wait_as_init(process.pid, suite.seconds)
    text = (folder / "output").read_text(encoding="utf-8", errors="replace")
    outcomes = suite.outcomes(work, status, text)
    if status == CUT_OFF:
        outcomes["time"] = f"cut off after {suite.seconds} s"
    for log in work.glob("regress/failed-*.log"):
        shutil.copy(log, folder)
    report = {"outcomes": outcomes, "seconds": time.monotonic() - started, "marked_syns": marked_syns()}
    (folder / "report").write_text(json.dumps(report, indent=1), encoding="utf-8")


# ---- outside ----


def run_once(suite, mode, label):
    """One suite in one mode in fresh namespaces; its report."""
    folder = LOGS / suite.group / suite.name / f"{mode.name.replace(':', '-')}{label}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = lab.isolated_command([lab.PYTHON, __file__, "--inside", suite.title(), mode.name, str(folder)])
    with open(folder / "runner", "wb") as log:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False)
    try:
        return json.loads((folder / "report").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        lines = (folder / "runner").read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no message"]
        return {"outcomes": {"run": f"could not run: {lines[-1]}"}, "seconds": 0, "marked_syns": 0}


def differing(bare, other):
    """The names of the tests whose outcome is not the same."""
    names = {**bare["outcomes"], **other["outcomes"]}
    return [name for name in names if bare["outcomes"].get(name) != other["outcomes"].get(name)]


class Comparison:
    """What is known of all suites in all modes."""

    def __init__(self, jobs, modes):
        self.modes = modes
        self.reports = collections.defaultdict(dict)  # suite title -> mode name -> report
        self.lasting = {}  # (suite title, mode name) -> {test: (bare's, this mode's outcome)}
        self.unsteady = {}  # the same, for what did not come back
        self._pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self._lock = threading.Lock()
        self._left = 0

    def tell(self, suite, mode, report, suffix=""):
        """The line of a run that has ended."""
        counts = collections.Counter(outcome.partition(":")[0] if outcome.startswith("skipped") else
                                     "ok" if outcome == "ok" else "failed" for outcome in report["outcomes"].values())
        shown = ", ".join(f"{counts[kind]} {kind}" for kind in ("ok", "skipped", "failed") if counts[kind])
        with self._lock:
            print(f"{report['seconds']:6.1f} s  {suite.title():32} {mode.name:12} {shown}{suffix}"
                  f"   ({self._left} to go)", flush=True)

    def _first_run(self, suite, mode):
        report = run_once(suite, mode, "")
        with self._lock:
            self.reports[suite.title()][mode.name] = report
            self._left -= 1
        self.tell(suite, mode, report)

    def _look_again(self, suite, mode):
        """Runs a pair that differed side by side, and sorts its differences."""
        bare_mode = MODES[0]
        key = (suite.title(), mode.name)
        first = {name: self._pair(suite, bare_mode, mode, name) for name in self._first_differences(suite, mode)}
        came_back = set()
        for repeat in range(REPEATS):
            label = f".again{repeat + 1}"
            with concurrent.futures.ThreadPoolExecutor(2) as pair:
                bare, other = pair.map(run_once, (suite, suite), (bare_mode, mode), (label, label))
            self.tell(suite, mode, other, f"; looked at again: {len(differing(bare, other))} differ")
            came_back.update(set(differing(bare, other)) & set(first))
        self.lasting[key] = {name: both for name, both in first.items() if name in came_back}
        self.unsteady[key] = {name: both for name, both in first.items() if name not in came_back}

    def _first_differences(self, suite, mode):
        reports = self.reports[suite.title()]
        return differing(reports["bare"], reports[mode.name])

    def _pair(self, suite, one, other, name):
        reports = self.reports[suite.title()]
        return tuple(reports[mode.name]["outcomes"].get(name, "did not run") for mode in (one, other))

    def run(self, chosen):
        """Everything. The slowest first, and a suite's modes next to each other."""
        jobs = [(suite, mode) for suite in sorted(chosen, key=lambda s: -s.seconds) for mode in self.modes]
        self._left = len(jobs)
        list(self._pool.map(lambda job: self._first_run(*job), jobs))
        suspects = [(suite, mode) for suite, mode in jobs if self._first_differences(suite, mode)]
        for suite, mode in suspects:  # one after the other: nothing else disturbs them
            self._look_again(suite, mode)

    def cell(self, suite, mode):
        """A field of the table."""
        report = self.reports[suite.title()][mode.name]
        outcomes = list(report["outcomes"].values())
        key = (suite.title(), mode.name)
        good = sum(outcome == "ok" or outcome.startswith("skipped") for outcome in outcomes)
        text = f"{good}/{len(outcomes)}"
        if mode.force:
            text += f" {report['marked_syns']}"
        if self.lasting.get(key):
            text += " DIFFERS"
        elif self.unsteady.get(key):
            text += " unsteady"
        return text

    def print_table(self, chosen):
        """Suite by mode: tests passed or skipped as planned, of all; SYNs of programs' own attempts; the verdict."""
        print("\nTests passed or skipped/all; in the forced modes, then: marked SYNs of the programs' own attempts")
        print(f"{'':32}" + "".join(f"{mode.name:18}" for mode in self.modes))
        for suite in chosen:
            cells = "".join(f"{self.cell(suite, mode):18}" for mode in self.modes)
            print(f"{suite.title():32}{cells}".rstrip())

    def print_differences(self):
        """Test by test."""
        for heading, table in (("Differences", self.lasting), ("Seen once, not again", self.unsteady)):
            rows = [(*key, name, *both) for key, tests in table.items() for name, both in tests.items()]
            if rows:
                print(f"\n{heading}")
            for title, mode, name, bare, other in rows:
                print(f"  {title} {mode}: {name}\n    bare: {bare}\n    {mode}: {other}")

    def _is_wrong(self, suite, mode):
        """A suite of which nothing succeeds bare proves nothing."""
        if mode.loaded:
            return bool(self.lasting.get((suite.title(), mode.name)))
        return all(outcome != "ok" for outcome in self.reports[suite.title()]["bare"]["outcomes"].values())

    def print_useless(self, chosen):
        """Suites that prove nothing, and why."""
        for suite in chosen:
            if self._is_wrong(suite, self.modes[0]):
                print(f"\nNothing succeeds bare in {suite.title()}:")
                for name, outcome in self.reports[suite.title()]["bare"]["outcomes"].items():
                    print(f"    {name}: {outcome}")

    def keeps_logs(self, suite):
        """Whether there is something to look into."""
        keys = [(suite.title(), mode.name) for mode in self.modes]
        return self._is_wrong(suite, self.modes[0]) or any(
            self.lasting.get(key) or self.unsteady.get(key) for key in keys)

    def verdict(self, chosen):
        """The last line; True if nothing differs."""
        judged = [(suite, mode) for suite in chosen for mode in self.modes]
        failed = sum(self._is_wrong(*both) for both in judged)
        print(f"{len(judged) - failed} passed, {failed} failed")
        return failed == 0


def obstacle(chosen):
    """Why the suites cannot run here, or None."""
    if os.geteuid() != 0:
        return "only root can: sshd and the firewall want it"
    wanted = {"cpython": suites.PYTHON, "openssh": str(suites.OPENSSH), "stress-ng": "/usr/bin/stress-ng",
              "glib": str(suites.GLIB)}
    absent = [path for group, path in wanted.items()
              if not os.path.exists(path) and any(suite.group == group for suite in chosen)]
    if absent:
        return f"not installed: {' '.join(absent)} (scripts/install-packages peers)"
    return lab.obstacle(("make",))


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("patterns", metavar="PATTERN", nargs="*", help="run the suites whose GROUP/NAME contains this")
    parser.add_argument("--short", action="store_true", help="only those that CI runs")
    parser.add_argument("--list", action="store_true", help="only name the suites and modes")
    parser.add_argument("--jobs", type=int, default=6, help="runs at a time (6: most of them sleep)")
    parser.add_argument("--modes", default=",".join(mode.name for mode in MODES[1:]), help="besides bare")
    parser.add_argument("--inside", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    by_title = {suite.title(): suite for suite in suites.TABLE}
    by_mode = {mode.name: mode for mode in MODES}
    if arguments.inside:
        title, mode, folder = arguments.inside
        inside(by_title[title], by_mode[mode], pathlib.Path(folder))
        sys.stdout.flush()
        os._exit(0)  # the first process of the namespaces: all others end with it
    chosen = [suite for title, suite in by_title.items() if (suite.short or not arguments.short) and (
        not arguments.patterns or any(p in title or fnmatch.fnmatch(title, p) for p in arguments.patterns))]
    if arguments.list:
        print("\n".join(by_title[suite.title()].title() for suite in chosen))
        print("\n".join(f"{mode.name:12} {mode.meaning}" for mode in MODES))
        return 0
    names = [name for name in dict.fromkeys(arguments.modes.split(",")) if name != MODES[0].name]
    unknown = [name for name in names if name not in by_mode]
    if unknown or not chosen:
        print(f"peers: unknown mode {unknown[0]}" if unknown else "peers: no suite matches", file=sys.stderr)
        return 2
    if trouble := obstacle(chosen):
        print(f"peers: {trouble}", file=sys.stderr)
        return 1
    comparison = Comparison(arguments.jobs, [MODES[0], *(by_mode[name] for name in names)])
    comparison.run(chosen)
    comparison.print_table(chosen)
    comparison.print_differences()
    comparison.print_useless(chosen)
    for suite in chosen:
        if not comparison.keeps_logs(suite):
            shutil.rmtree(LOGS / suite.group / suite.name, ignore_errors=True)
    return 0 if comparison.verdict(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
