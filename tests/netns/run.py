"""Runs the network tests.

    /usr/bin/python3 tests/netns/run.py [--list] [--jobs N] [PATTERN ...]

A case runs in a network of its own, in private namespaces; light ones share it with others that want the same. A
pattern selects the cases whose name contains it (or matches it, with * and ?). One line per case as it ends, then what
was compared, the slowest, and "N passed, N failed"; exit status 1 if one failed. What a failed case saw (events, program
outputs, traces) stays in build/tests/netns-logs/CASE/. A case that fails while the machine itself stood still, as a
virtual one does now and then, shows nothing: it runs again.
"""

import argparse
import asyncio
import concurrent.futures
import contextvars
import dataclasses
import fnmatch
import importlib
import json
import os
import pathlib
import shutil
import sys
import time
import traceback

import cases
import hardening
import lab
import pivot
import sanitizer

LOGS = lab.ROOT / "build/tests/netns-logs"
RESULT_MARK = "result: "
COMPARED = []  # rows of hardening.tell(), of all cases
COLUMNS = (44, 60, 60)  # of that table; what does not fit is cut
MAX_SHARING = 20  # cases in one lab: two names each, of topology.MAX_HOSTS
AT_A_TIME = 7  # cases that run in a shared lab: fourteen programs that sleep
SLOWEST = 10  # named at the end
# Slots of a run: a normal case takes SLOTS_PER_JOB, a lab of light ones one, a heavy case all.
SLOTS_PER_JOB = 2
MAX_REPEATS = 2  # of a case that failed on a machine that stood still


def load_cases():
    """Imports every test file; they register their cases."""
    for path in sorted(lab.HERE.glob("test_*.py")):
        importlib.import_module(path.stem)


def selected(patterns):
    """The names of the cases that one of the patterns selects; all without patterns."""
    return [name for name in cases.REGISTRY
            if not patterns or any(pattern in name or fnmatch.fnmatch(name, pattern) for pattern in patterns)]


@dataclasses.dataclass
class Batch:
    """Cases that run in one lab, by name."""

    names: list
    load: str
    control: bool = False  # see sanitizer.py

    def seconds(self):
        """The hard limit."""
        longest = max(cases.REGISTRY[name].seconds for name in self.names)
        return longest * -(-len(self.names) // AT_A_TIME) * sanitizer.TIME_FACTOR

    def folder(self):
        """Where its files go."""
        return LOGS / f"{'control-' if self.control else ''}{self.names[0]}"


def batches(names):
    """Heavy ones first, one after the other, with nothing beside them; then the rest, long light ones early."""
    shared, single = {}, []
    for name in names:
        case = cases.REGISTRY[name]
        if case.load == cases.LIGHT:
            shared.setdefault(case.lab_key(), []).append(name)
        else:
            single.append(Batch([name], case.load))
    light = [Batch(group[first:first + MAX_SHARING], cases.LIGHT)
             for group in shared.values() for first in range(0, len(group), MAX_SHARING)]
    light.sort(key=lambda batch: -len(batch.names))
    single.sort(key=lambda batch: batch.load != cases.HEAVY)  # stable
    heavy = sum(batch.load == cases.HEAVY for batch in single)
    return single[:heavy] + light + single[heavy:]


# -- inside the namespaces --


def run_function(case, network, name, shared):
    """Runs one case in this thread and tells how it went; the last line of the text is the reason of a failure."""
    if shared:
        lab.CASE.set(name)
    started, text = lab.now_ms(), ""
    try:
        case.function(network, *case.arguments)
    except AssertionError as failure:
        text = f"{traceback.format_exc()}\n{failure}"
    except Exception as error:  # pylint: disable=broad-exception-caught
        text = f"{traceback.format_exc()}\n{type(error).__name__}: {error}"
    reported = sanitizer.reports(network.folder, name if shared else "")
    if reported:
        text = f"{text}\nthe sanitizer has reported: {' '.join(reported)}"
    cases.emit(RESULT_MARK, [name, (lab.now_ms() - started) / 1000, text, bool(reported), network.stood_still_ms(started)])


def run_inside(folder, names):
    """Sets the lab up and runs the cases in it, this process being the first of its namespaces."""
    registered = [cases.REGISTRY[name] for name in names]
    try:
        network = registered[0].make_lab(folder)
    except Exception as error:  # pylint: disable=broad-exception-caught
        for name in names:
            cases.emit(RESULT_MARK, [name, 0, f"{traceback.format_exc()}\n{type(error).__name__}: {error}", False, 0])
        return
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for name, case in zip(names, registered):
            pool.submit(contextvars.copy_context().run, run_function, case, network, name, len(names) > 1)


# -- outside --


class Slots:
    """A counting semaphore that is taken in order and by several units at once."""

    def __init__(self, total):
        self.total, self._free, self._waiting = total, total, []

    async def take(self, count):
        """Waits for its turn and for so many free slots."""
        if self._waiting or self._free < count:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append((count, turn))
            await turn
        else:
            self._free -= count

    def give_back(self, count):
        """Lets the next ones go on."""
        self._free += count
        while self._waiting and self._waiting[0][0] <= self._free:
            count, turn = self._waiting.pop(0)
            self._free -= count
            turn.set_result(None)


@dataclasses.dataclass
class Result:
    """How a case went."""

    passed: bool
    seconds: float
    reported: bool = False  # the sanitizer has something to say
    told_nothing: bool = False  # it fails below the sanitizer's runtime anyhow
    stood_still_ms: float = 0  # the machine, at the longest

    def shows_nothing(self):
        """A failure that says more of the machine than of libhappy."""
        return not self.passed and not self.reported and self.stood_still_ms > 0


def note_result(batch, name, seconds, text, reported=False, stood_still_ms=0):
    """Prints a case's line and keeps what it said if it failed."""
    result, took = Result(not text, seconds, reported, stood_still_ms=stood_still_ms), f"{seconds:5.2f} s"
    if text:
        (batch.folder() / f"result-{name}").write_text(text + "\n")
    if batch.control:
        return result
    if not text:
        print(f"ok    {took}  {name}", flush=True)
    else:
        # Not the last word where a control is to follow, or another run.
        verdict = "fail " if is_in_doubt(result) or result.shows_nothing() else "FAIL "
        print(f"{verdict} {took}  {name}: {text.splitlines()[-1]}\n"
              f"               see {batch.folder().relative_to(lab.ROOT)}", flush=True)
    return result


def is_in_doubt(result):
    """Whether a failure may be that of the sanitizer's runtime."""
    return sanitizer.USED and not result.passed


async def read_results(process, batch, results):
    """Follows what the cases print, to the end; what is neither result nor row is returned."""
    rest = []
    async for data in process.stdout:
        line = data.decode(errors="replace").rstrip("\n")
        if line.startswith(RESULT_MARK):
            name, *result = json.loads(line.removeprefix(RESULT_MARK))
            results[name] = note_result(batch, name, *result)
        elif line.startswith(hardening.TABLE_MARK):
            if not batch.control:
                COMPARED.append(json.loads(line.removeprefix(hardening.TABLE_MARK)))
        elif line.startswith(pivot.MARK):
            pivot.collect([line])
        else:
            rest.append(line)
    return "\n".join(rest)


async def run_batch(batch):
    """Runs cases in fresh namespaces and prints their lines; {name: Result}."""
    folder = batch.folder()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = lab.isolated_command(
        [lab.PYTHON, str(pathlib.Path(__file__).resolve()), "--inside", str(folder), *batch.names],
        cases.REGISTRY[batch.names[0]].userns)
    started, results = time.monotonic(), {}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        limit=1 << 24, env={**os.environ, **({sanitizer.CONTROL_VARIABLE: "1"} if batch.control else {})})
    try:
        said = await asyncio.wait_for(read_results(process, batch, results), batch.seconds())
        await process.wait()
        said = said or f"exit status {process.returncode}"
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        said = f"still running after {batch.seconds()} s"
    for name in batch.names:
        if name not in results:
            results[name] = note_result(batch, name, time.monotonic() - started, said)
    if all(result.passed for result in results.values()):
        shutil.rmtree(folder)
    return results


async def run_again(name, result):
    """The result of a failed case on a machine that stands still no more, or what it was last."""
    for _ in range(MAX_REPEATS):
        if not result.shows_nothing():
            break
        print(f"again          {name}: the machine stood still for {result.stood_still_ms:.0f} ms", flush=True)
        result = (await run_batch(Batch([name], cases.REGISTRY[name].load)))[name]
    if result.shows_nothing():
        print(f"FAIL           {name}: in every run", flush=True)
    return result


async def run_control(name, result):
    """Decides about a failure that may be the sanitizer's own."""
    of_control = (await run_batch(Batch([name], cases.REGISTRY[name].load, control=True)))[name]
    result.told_nothing = of_control.reported if result.reported else not of_control.passed
    print(f"{'n/a   ' if result.told_nothing else 'FAIL  '}         {name}: "
          f"{'fails' if result.told_nothing else 'passes'} with the sanitizer's runtime alone", flush=True)


def cut(text, width):
    """The text in a column."""
    return (text if len(text) <= width else text[:width - 3] + "...").ljust(width)


def print_table():
    """What programs did bare and with libhappy, next to each other."""
    if not COMPARED:
        return
    print("  ".join([*map(cut, ("compared", "bare", "with libhappy"), COLUMNS), "equal"]))
    for *texts, equal in sorted(COMPARED):
        print("  ".join([*map(cut, texts, COLUMNS), "yes" if equal else "NO"]))


def print_slowest(results):
    """Where the time goes."""
    slowest = sorted(results.items(), key=lambda item: -item[1].seconds)[:SLOWEST]
    print("slowest: " + ", ".join(f"{name} {result.seconds:.1f} s" for name, result in slowest))


async def run_cases(names, jobs):
    """Runs the cases; True if all passed."""
    slots = Slots(jobs * SLOTS_PER_JOB)
    wanted = {cases.LIGHT: 1, cases.NORMAL: SLOTS_PER_JOB, cases.HEAVY: slots.total}

    async def in_slots(batch):
        await slots.take(wanted[batch.load])
        try:
            of_batch = await run_batch(batch)
            for name, result in of_batch.items():
                of_batch[name] = result = await run_again(name, result)
                if is_in_doubt(result):
                    await run_control(name, result)
            return of_batch
        finally:
            slots.give_back(wanted[batch.load])

    started, results = time.monotonic(), {}
    for of_batch in await asyncio.gather(*map(in_slots, batches(names))):
        results.update(of_batch)
    print_table()
    pivot.show()
    print_slowest(results)
    passed = sum(result.passed for result in results.values())
    told_nothing = sum(result.told_nothing for result in results.values())
    print(f"{len(results)} cases in {time.monotonic() - started:.0f} s")
    if told_nothing:
        print(f"{told_nothing} could tell nothing of libhappy, as they fail with the sanitizer's runtime alone")
    failed = len(results) - passed - told_nothing
    print(f"{passed} passed, {failed} failed")
    return failed == 0


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description="Runs the network tests.")
    parser.add_argument("patterns", metavar="PATTERN", nargs="*", help="run the cases whose name contains this")
    parser.add_argument("--list", action="store_true", help="only name the cases")
    parser.add_argument("--jobs", type=int, default=3, help="cases at a time (3); twice as many labs of light ones")
    parser.add_argument("--inside", metavar="WORD", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--storm-seconds", metavar="N", help="how long the storm of threads lasts (20)")
    parser.add_argument("--seed", metavar="N", help="the seed of what is random")
    arguments = parser.parse_args()
    for name, value in (("STORM_SECONDS", arguments.storm_seconds), ("SEED", arguments.seed)):
        if value:
            os.environ[f"HAPPY_TEST_{name}"] = value
    load_cases()
    if arguments.inside:
        run_inside(arguments.inside[0], arguments.inside[1:])
        sys.stdout.flush()
        os._exit(0)  # the first process of the namespaces: all others end with it
    names = selected(arguments.patterns)
    if arguments.list:
        print("\n".join(names))
        return 0
    if not names:
        print(f"no case matches {' '.join(arguments.patterns)}", file=sys.stderr)
        return 2
    if trouble := lab.obstacle():
        print(f"netns: {trouble}", file=sys.stderr)
        return 1
    return 0 if asyncio.run(run_cases(names, arguments.jobs)) else 1


if __name__ == "__main__":
    sys.exit(main())
