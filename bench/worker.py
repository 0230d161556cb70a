"""A contender's process: it prepares, then runs a batch whenever it is asked for one."""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import os
import time
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

import numpy as np

from bench.cases import Case
from bench.contenders import THREADS, Contender, make_contender
from bench.inputs import make_inputs
from bench.reads import bytes_read, reads_of_cycle

__all__ = ["Worker", "available_cpus"]


def available_cpus() -> list[int]:
    """Return the CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


_CPUS = available_cpus()


class Worker:
    """The controller's end: one process, for one contender and one case.

    Attributes:
        name: the contender's.
        cycle_ns: what a cycle took when the worker was ready.
        bytes_read: the mean bytes of the rows that a call must read.
        digest: of all num_emitted of a cycle; contenders that agree have done the same work.
    """

    cycle_ns: int
    bytes_read: int
    digest: str

    def __init__(self, name: str, case: Case) -> None:
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(far_end, name, case), daemon=True)
        self._process.start()
        far_end.close()

    def wait_until_ready(self) -> None:
        """Wait for the inputs to be made and a first cycle to be run."""
        self.cycle_ns, self.bytes_read, self.digest = self._pipe.recv()

    def time(self, cycles: int) -> int:
        """Let the contender run this many cycles; return the nanoseconds they took together."""
        self._pipe.send(cycles)
        elapsed: int = self._pipe.recv()
        return elapsed

    def __enter__(self) -> Self:
        """Return the worker, which runs already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Hang up, which ends the process."""
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection, name: str, case: Case) -> None:
    _stay_on(THREADS[name])
    inputs = make_inputs(case)
    contender = make_contender(name, inputs)
    gc.disable()
    num_emitted = contender.cycle()
    _stay_on(1)  # the calling thread alone: those of a pool have the others by now
    digest = hashlib.sha256(np.concatenate(num_emitted).tobytes()).hexdigest()
    pipe.send((_time(contender, 1), bytes_read(inputs, reads_of_cycle(inputs)), digest))
    while True:
        try:
            cycles = pipe.recv()
        except EOFError:
            return
        pipe.send(_time(contender, cycles))


def _stay_on(cpus: int) -> None:
    """Keep this thread, and those that it starts, on so many CPUs: one thread and two share one."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, _CPUS[-cpus:])


def _time(contender: Contender, cycles: int) -> int:
    contender.rewind()
    contender.cycle()  # the others have been in the caches meanwhile
    elapsed = 0
    for _ in range(cycles):
        contender.rewind()
        start = time.perf_counter_ns()
        contender.cycle()
        elapsed += time.perf_counter_ns() - start
    return elapsed
