"""Runs the network tests.

    /usr/bin/python3 tests/netns/run.py [--list] [--jobs N] [PATTERN ...]

A case runs in a network of its own, in private namespaces. A pattern selects the cases whose name contains it (or
matches it, with * and ?). One line per case as it ends, then "N passed, N failed"; exit status 1 if one failed. What a
failed case saw (events, program outputs, traces) stays in build/tests/netns-logs/CASE/.
"""

import argparse
import asyncio
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

LOGS = lab.ROOT / "build/tests/netns-logs"
COMPARED = []  # rows of hardening.tell(), of all cases
COLUMNS = (44, 60, 60)  # of that table; what does not fit is cut


def load_cases():
    """Imports every test file; they register their cases."""
    for path in sorted(lab.HERE.glob("test_*.py")):
        importlib.import_module(path.stem)


def selected(patterns):
    """The names of the cases that one of the patterns selects; all without patterns."""
    return [name for name in cases.REGISTRY
            if not patterns or any(pattern in name or fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def run_inside(name):
    """Runs one case in this process; the first of its namespaces. The last line printed is the reason of a failure."""
    try:
        cases.REGISTRY[name].run(LOGS / name)
    except AssertionError as failure:
        print(f"{traceback.format_exc()}\n{failure}")
        return 1
    except Exception as error:  # pylint: disable=broad-exception-caught
        print(f"{traceback.format_exc()}\n{type(error).__name__}: {error}")
        return 1
    return 0


async def run_case(name):
    """Runs one case in fresh namespaces and prints its line; True if it passed."""
    case, folder = cases.REGISTRY[name], LOGS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = lab.isolated_command([lab.PYTHON, str(pathlib.Path(__file__).resolve()), "--inside", name], case.userns)
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    try:
        output, _ = await asyncio.wait_for(process.communicate(), case.seconds)
        text = output.decode(errors="replace").strip()
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        text = f"still running after {case.seconds} s"
    COMPARED.extend(json.loads(line.removeprefix(hardening.TABLE_MARK)) for line in text.splitlines()
                    if line.startswith(hardening.TABLE_MARK))
    pivot.collect(text.splitlines())
    passed = process.returncode == 0
    took = f"{time.monotonic() - started:5.2f} s"
    if passed:
        shutil.rmtree(folder)
        print(f"ok    {took}  {name}", flush=True)
    else:
        (folder / "result").write_text(text + "\n")
        reason = (text.splitlines() or [f"exit status {process.returncode}"])[-1]
        print(f"FAIL  {took}  {name}: {reason}\n               see {folder.relative_to(lab.ROOT)}", flush=True)
    return passed


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


async def run_cases(names, jobs):
    """Runs the cases, `jobs` at a time; True if all passed."""
    slots = asyncio.Semaphore(jobs)

    async def in_slot(name):
        async with slots:
            return await run_case(name)

    results = await asyncio.gather(*map(in_slot, names))
    print_table()
    pivot.show()
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return all(results)


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description="Runs the network tests.")
    parser.add_argument("patterns", metavar="PATTERN", nargs="*", help="run the cases whose name contains this")
    parser.add_argument("--list", action="store_true", help="only name the cases")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time (2)")
    parser.add_argument("--inside", metavar="CASE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    load_cases()
    if arguments.inside:
        status = run_inside(arguments.inside)
        sys.stdout.flush()
        os._exit(status)  # the first process of the namespaces: all others end with it
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
