"""Programs that are short of descriptors, threads, memory, /proc."""

import hardening
import sanitizer
from cases import LIGHT, REGISTRY, Case, check, victim

# In KiB. With 4096 libhappy gets in and a sanitizer's runtime, short of memory itself, ends the program.
MEMORY_LIMITS = (2048, 8192, 16384, 65536) if sanitizer.USED else (2048, 4096, 8192, 16384, 65536)
ONE_RETRY = {"client_settings": {"ipv4/tcp_syn_retries": 1}}  # one dead address takes 3 s


def limited(network, what, amount):
    """What bare can do with so little can be done with libhappy."""
    hardening.compare(network, f"limit {what} {amount}", lambda host: victim("limits", what, amount, host.name, 7),
                      sooner=True)


for what, amounts in (("nofile", (5, 8, 16, 64, 100)), ("filled", (1, 2, 3, 6, 12)), ("nproc", (1,)),
                      ("as", MEMORY_LIMITS), ("stack", (64, 8192))):
    for amount in amounts:
        REGISTRY[f"limit_{what}_{amount}"] = Case(limited, ("v6-drop",), (what, amount), load=LIGHT,
                                                  lab_options=ONE_RETRY)


def little_memory(network, kilobytes):
    """Where bare gets through, so does libhappy; and nothing crashes that does not crash bare."""
    hosts, bare, happy = hardening.run_both(network, lambda host: victim("limits", "as", kilobytes, host.name, 7))
    equal = happy.status == bare.status and (happy.output == bare.output or bare.status != 0)
    hardening.tell(f"memory: {kilobytes} KiB", f"{bare.status} {hardening.masked(bare.output, hosts[0]).split()}",
                   f"{happy.status} {hardening.masked(happy.output, hosts[1]).split()}", equal)
    check(equal, f"{kilobytes} KiB: {happy.status} {happy.output}; bare {bare.status} {bare.output}")


# Between these the engine can just be loaded and the program has nothing left for itself: no library can help
# where what it needs is what the program needs.
for kilobytes in (0, 160, 320, 800, 960, 1120, 1280, 1440):
    REGISTRY[f"limit_memory_{kilobytes}"] = Case(little_memory, ("v6-drop",), (kilobytes,), load=LIGHT,
                                                 lab_options=ONE_RETRY)


def without_proc(network, how):
    """No /proc: unmounted, or an empty folder in its place."""
    hide = {"unmounted": "umount -l /proc", "empty": "mount -t tmpfs tmpfs /proc"}[how]

    def command(host):
        return ["unshare", "-m", "sh", "-c", f'{hide}; exec "$@"', "sh", *victim("walk", host.name, 7)]

    hardening.compare_result(network, f"/proc {how}", command)


for how in ("unmounted", "empty"):
    REGISTRY[f"limit_proc_{how}"] = Case(without_proc, ("v6-drop",), (how,), lab_options=ONE_RETRY)
