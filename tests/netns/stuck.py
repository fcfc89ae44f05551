"""What the threads of a program that does not end are doing, for whoever looks into it."""

import pathlib
import shutil
import subprocess

GDB_SECONDS = 30  # a sanitized program with 64 threads takes 5


def of_session(session):
    """The processes of a session, by pid."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(encoding="ascii").rpartition(") ")[2].split()
        except OSError:  # has ended
            continue
        if int(fields[3]) == session:
            found.append(int(folder.name))
    return sorted(found)


def read(path):
    """A file of /proc in one line, or why it cannot be read."""
    try:
        return " | ".join(path.read_text(encoding="ascii", errors="replace").split("\n")).strip(" |")
    except OSError as error:
        return str(error.strerror)


def threads(pid):
    """A line for each thread: where it waits, in which call, and which signals it has blocked and pending."""
    for task in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*")):
        wanted = ("State:", "SigPnd:", "ShdPnd:", "SigBlk:")
        status = " ".join(" ".join(line.split()) for line in read(task / "status").split(" | ") if line.startswith(wanted))
        yield f"{task.name} {read(task / 'comm')}: {status}; in {read(task / 'wchan')}, call {read(task / 'syscall')}"


def backtraces(pid):
    """What gdb says, if it is here."""
    if not shutil.which("gdb"):
        return "no gdb here"
    command = ["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "set pagination off", "-ex", "thread apply all backtrace 30"]
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=GDB_SECONDS,
                              stdin=subprocess.DEVNULL).stdout
    except subprocess.TimeoutExpired as expired:
        return f"gdb took too long; {(expired.stdout or b'').decode(errors='replace')}"


def describe(session):
    """All of it, for every process of a session."""
    parts = []
    for pid in of_session(session):
        command = read(pathlib.Path(f"/proc/{pid}/cmdline")).replace("\0", " ")
        parts += [f"== {pid}: {command[:120]}", *threads(pid), backtraces(pid)]
    return "\n".join(parts)
