"""A process between the judge and a subject: when either ends, so does all that the subject began.

It does not import what is ours, so it is small. The subject's half has a session of its own, whose
signals do not reach the guardian. On Linux whatever a subject leaves behind, daemons included, is
handed to the guardian by the kernel.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

MOST_PROCESSES = 64
"""Of a subject's, alive at once: beyond that the eldest have to go."""
PERIOD = 1.0
"""Seconds between two looks at them."""
_SUBREAPER, _DEATH_SIGNAL = 36, 1


def guard(life: int) -> None:
    """Fork: return in the subject's half, and never in the guardian's.

    The guardian ends as the subject did, by the same exit code or signal.

    Args:
        life: a pipe's end to read from, which closes when the judge ends.
    """
    judge = os.getppid()
    _control(_SUBREAPER, 1)
    subject = os.fork()
    if subject == 0:
        os.close(life)
        os.setsid()
        _control(_DEATH_SIGNAL, signal.SIGKILL)
        return
    os.closerange(3, life)
    os.closerange(life + 1, 1 << 10)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    status = _watch(subject, life, judge)
    _end_all(subject)
    _end_like(status)


def _watch(subject: int, life: int, judge: int) -> int:
    """Wait for the subject's end, or the judge's; return how the subject ended."""
    watched, period = [life], 0.1
    with contextlib.suppress(AttributeError, OSError):  # of Linux alone
        watched.append(os.pidfd_open(subject))
        period = PERIOD
    while True:
        ready = select.select(watched, [], [], period)[0]
        done, status = os.waitpid(subject, os.WNOHANG)
        if done:
            return status
        if life in ready or os.getppid() != judge:
            return signal.SIGKILL
        _reap(spare=subject)
        for process in _beyond(subject):
            _kill(process)


def _end_all(subject: int) -> None:
    """Kill the subject and all that it left, until nothing is."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(subject, signal.SIGKILL)
    _kill(subject)
    for _ in range(1_000):
        for process in _children(os.getpid(), dict(_processes())):
            _kill(process)
        if not _reap():
            return
        time.sleep(0.01)


def _reap(spare: int = 0) -> bool:
    """Take the dead off the kernel's list; return whether there is a process left."""
    try:
        while True:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or found.si_pid == spare:
                return True
            os.waitpid(found.si_pid, os.WNOHANG)
    except ChildProcessError:
        return False


def _beyond(subject: int) -> list[int]:
    """The subject's eldest processes, as many as are too many; itself is none of them."""
    found = _begun(subject)
    eldest = sorted(found, key=_age) if len(found) > MOST_PROCESSES else []
    return eldest[: len(found) - MOST_PROCESSES]


def _begun(subject: int) -> list[int]:
    """The subject's living processes without itself, those handed to the guardian included."""
    parents = dict(_processes())
    found = [child for child in _children(os.getpid(), parents) if child != subject]
    found += _children(subject, parents)
    for process in found:
        found += _children(process, parents)
    return found


def _children(process: int, parents: dict[int, int]) -> list[int]:
    return [child for child, parent in parents.items() if parent == process]


def _processes() -> Iterator[tuple[int, int]]:
    """Every living process and its parent; nothing where there is no /proc."""
    with contextlib.suppress(OSError), os.scandir("/proc") as folders:
        for name in (folder.name for folder in folders):
            if name.isdigit() and (fields := _stat(name)) and fields[0] not in (b"Z", b"X"):
                yield int(name), int(fields[1])


def _stat(process: str) -> list[bytes]:
    """What the kernel says of a process, from its state on."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    return []


def _age(process: int) -> int:
    """When it was started, in ticks of the kernel's."""
    fields = _stat(str(process))
    return int(fields[19]) if fields else 0


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)


def _control(option: int, value: int) -> None:
    """Linux's prctl; elsewhere there is none, and daemons escape."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _end_like(status: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)
