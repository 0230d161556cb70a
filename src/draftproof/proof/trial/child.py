"""The child process: it loads a subject, runs checks on it, and streams their findings back.

Messages are lines of JSON over a socket of its own, so that a subject may print what it likes. The
first line that comes in says what to load; every further one names a check, and what it is asked
for. What goes out:

    {"ready": true, "pid": ...}   once all that is ours is imported
    {"loaded": {name, contract}}  after the first line, or {"refused": ...}, or {"broken": ...}
    {"finding": {...}}            any number, while a check runs
    {"done": true}                after a check
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import functools
import json
import mmap
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from draftproof.proof.decoders.sources import require_source
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.raised import phrase
from draftproof.proof.subjects.subject import Subject, load
from draftproof.proof.trial.examination import Check, broken, examine, find_checks
from draftproof.proof.trial.plan import Plan

__all__ = ["CHANNEL_LOST", "HEART", "main"]

CHANNEL_LOST = 97
"""Exit code of a child whose subject closed the socket."""
HEART = struct.Struct("d")
"""When the subject's present call began, by `time.monotonic`; 0 between calls."""


class Channel:
    """The child's end of the socket; a forked copy of the child has none."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.set_inheritable(False)
        self._lines = self._socket.makefile("rb")
        self._owner = os.getpid()
        os.register_at_fork(after_in_child=self._close)

    def receive(self) -> dict[str, Any]:
        """Wait for a message; the end of the channel is the end of the process."""
        try:
            line = self._lines.readline()
        except OSError:
            os._exit(CHANNEL_LOST)
        if not line:
            os._exit(0)
        message: dict[str, Any] = json.loads(line)
        return message

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; without a channel there is nothing left to do."""
        if os.getpid() != self._owner:
            os._exit(0)
        line = json.dumps(message, default=_plain).encode() + b"\n"
        try:
            self._socket.sendall(line)
        except OSError:
            os._exit(CHANNEL_LOST)

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._socket.detach())


def main(channel_fd: int, heart_fd: int) -> NoReturn:
    """Serve one parent until it closes the channel."""
    channel = Channel(channel_fd)
    channel.send({"ready": True, "pid": os.getpid()})
    order = channel.receive()
    plan, home = _read_plan(order["plan"]), Path.cwd()
    mask = os.umask(0)
    os.umask(mask)
    _guard_the_machine()
    signal.alarm(_backstop(plan))
    try:
        subject = load(order["spec"], order["contract"])
        require_source(subject, plan)
        subject = dataclasses.replace(subject, call=_beating(subject.call, heart_fd))
        checks = find_checks(order["registry"])
        _restore()
    except ValueError as error:
        channel.send({"refused": str(error)})
        os._exit(0)
    except ContractBroken as failure:
        channel.send({"broken": failure.reason})
        os._exit(0)
    except BaseException as error:
        channel.send({"broken": f"raised {phrase(error)}"})
        os._exit(0)
    channel.send({"loaded": {"name": subject.name, "contract": subject.contract}})
    while True:
        signal.alarm(0)
        os.umask(mask)
        asked = channel.receive()
        name, plan = asked["check"], _read_plan(asked["plan"])
        os.chdir(home)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_backstop(plan))
        _run(name, checks[name], subject, plan, channel)
        channel.send({"done": True})


def _read_plan(data: dict[str, Any]) -> Plan:
    """JSON has lists where a plan has tuples."""
    sizes = tuple((g, K) for g, K in data["sizes"])
    return Plan(**{**data, "worlds": tuple(data["worlds"]), "sizes": sizes})


def _run(name: str, check: Check, subject: Subject, plan: Plan, channel: Channel) -> None:
    try:
        for finding in examine(name, check, subject, plan, let_through=()):
            channel.send({"finding": finding.to_dict()})
    except BaseException as error:  # a signal handler of the subject's, say, between two calls
        channel.send({"finding": broken(name, f"raised {phrase(error)}").to_dict()})
    with contextlib.suppress(Exception):
        sys.stdout.flush()


def _beating(call: Callable[..., Any], heart_fd: int) -> Callable[..., Any]:
    """Let the parent see since when the subject has been in one call."""
    heart = mmap.mmap(heart_fd, HEART.size)
    os.close(heart_fd)
    return _beating_in(heart, call)


def _beating_in(heart: mmap.mmap, call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def beating(*arguments: Any, **named: Any) -> Any:
        HEART.pack_into(heart, 0, time.monotonic())
        try:
            result = call(*arguments, **named)
        finally:
            HEART.pack_into(heart, 0, 0.0)
            _restore()
        return _beating_in(heart, result) if callable(result) else result  # a decoder, just made

    for name in DECLARED:
        if hasattr(call, name):  # by its class, which a wrapper does not show
            setattr(beating, name, getattr(call, name))
    return beating


DECLARED = ("draws", "order", "lacks", "takes_seeds")
"""Attributes by which callables say what they are."""

_SHARED = [
    (module, name, getattr(module, name))
    for module, name in ((np.random, "default_rng"), (np.random, "Generator"), (time, "monotonic"))
]
"""What the judge relies on and every part of a program shares."""


def _restore() -> None:
    """Undo, and do not forgive, what a subject does to others' modules."""
    for module, name, original in _SHARED:
        if getattr(module, name, None) is not original:
            setattr(module, name, original)
            raise ContractBroken(f"replaced {module.__name__}.{name} for the whole program")


def _backstop(plan: Plan) -> int:
    """Seconds after which the child ends though no thread of it gets to run."""
    return int(plan.timeout) + 60


def _guard_the_machine() -> None:
    """Leave no core file, take half of the memory at most, be the first that the kernel ends."""
    import resource

    faulthandler.enable(all_threads=False)
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError, StopIteration):
        Path("/proc/self/oom_score_adj").write_text("1000")
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        half = free * 1024 // 2  # a trial has two children
        limit = half if hard == resource.RLIM_INFINITY else min(half, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _plain(value: Any) -> Any:
    """A NumPy scalar or array as JSON takes it."""
    return value.tolist()
