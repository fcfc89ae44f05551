"""What getaddrinfo() and gethostbyname() say is what libc says, in every field, whatever was asked for."""

import pathlib
import re

import cases
import parity
from cases import check, check_equal, victim

SHOWN = 12  # of the differences; more say no more
PATIENCE_MS = 5000  # answers that are late because much runs at once are waited for
SECONDS = 60  # for one setting; a few are enough

# Where libhappy may say something else, and why: a lookup returns when connecting can begin (hev3 Handling DNS Answers),
# without the family whose answer is late, and only where a stream of either family is wanted.
EARLY = {"late6.test": "10 ", "late4.test": "2 "}  # the family that is left out


def _is_early(words, bare, happy):
    """Whether `happy` is `bare` without the entries of the late family."""
    if words[0] != "getaddrinfo" or words[1] not in EARLY or words[3] not in ("null", str(parity.UNSPEC)):
        return False
    code, *entries = bare.split(" [")
    early = [entry for entry in entries if not entry.split(" ", 1)[1].startswith(EARLY[words[1]])]
    return bare.startswith("0 ") and happy.split(" [") == [code, *early]


def _comparable(words, line):
    """Without h_errno where it says which of two answers came last: one had addresses, the other none."""
    families = {entry.split(" ")[1] for entry in line.split(" [")[1:]}
    of_both = words[0] == "getaddrinfo" and words[3] in ("null", str(parity.UNSPEC))
    return re.sub(r"^0 h_errno \d+", "0", line) if of_both and len(families) == 1 else line


def _write_files(setting):
    """Puts the setting's files in place of the lab's."""
    for name, text in (("resolv.conf", setting.resolv), ("gai.conf", setting.gai), ("hosts", setting.hosts),
                       ("nsswitch.conf", f"passwd: files\nhosts: {setting.hosts_line}\nservices: files\n")):
        pathlib.Path("/etc", name).write_text(text.format(hostname=parity.socket.gethostname()), encoding="ascii")


def _compare(network, setting, seconds):
    """(number of questions, number of early returns, differences as text) under one setting."""
    _write_files(setting)
    asked = parity.questions(setting)
    path = network.folder / f"{setting.name}.questions"
    path.write_text("".join("\t".join(words) + "\n" for words in asked), encoding="ascii")
    environment = {"HAPPY_RESOLUTION_DELAY_MS": str(PATIENCE_MS), **setting.environment}
    runs = [network.start(victim("parity", path), happy=happy, trace=False, environment=environment)
            for happy in (False, True)]
    bare, happy = [run.wait(seconds) for run in runs]
    for run, what in ((bare, "bare"), (happy, "with libhappy")):
        check_equal((run.status, len(run.output.splitlines())), (0, len(asked)),
                    f"status and number of answers {what} under {setting.name}")
    differences, early = [], 0
    for words, one, other in zip(asked, bare.output.splitlines(), happy.output.splitlines()):
        if _comparable(words, one) == _comparable(words, other):
            continue
        if _is_early(words, one, other):
            early += 1
        else:
            differences.append(f"{setting.name}: {' '.join(words)[:160]}\n    bare:  {one}\n    happy: {other}")
    return len(asked), early, differences


def _case_of(setting):
    """The case of one setting."""

    def agrees_with_libc(network, setting):
        network.set_records(setting.zone)
        total, early, differences = _compare(network, setting, SECONDS)
        (network.folder / "differences").write_text("\n".join(differences), encoding="utf-8")
        shown = "\n".join(differences[:SHOWN])
        check(not differences, f"{len(differences)} of {total} answers differ (early returns: {early}):\n{shown}")

    return cases.Case(agrees_with_libc, setting.faults, (setting,), seconds=SECONDS + 20)


for one in parity.SETTINGS:
    cases.REGISTRY[f"parity.{one.name}"] = _case_of(one)


@cases.case(load=cases.LIGHT)
def parity_asks_enough(_network):
    """The tables above are not emptied by accident."""
    total = sum(len(parity.questions(setting)) for setting in parity.SETTINGS)
    check(total >= 3000, f"only {total} questions")
