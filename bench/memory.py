"""How far a call raises the memory of its process above that of the inputs."""

from __future__ import annotations

import ctypes
import multiprocessing
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from bench.cases import Case
from bench.contenders import make_contender
from bench.inputs import make_inputs

__all__ = ["can_measure_memory", "peak_extra_bytes"]

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def can_measure_memory() -> bool:
    """Say whether this system tells the peak of a process and lets it be reset: Linux does."""
    return _STATUS.exists() and _CLEAR.exists()


def peak_extra_bytes(contender: str, case: Case) -> int:
    """Measure in a process of its own: the peak of a cycle of calls less what was held before.

    The larger of two views: the resident set as the kernel counts it, in pages, and NumPy's own
    allocations, which a reused page would hide from the kernel.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measure, contender, case).result()


def _measure(name: str, case: Case) -> int:
    make_contender(name, make_inputs(replace(case, B=1, V=8))).cycle()  # loads what it needs
    contender = make_contender(name, make_inputs(case))
    ctypes.CDLL(None).malloc_trim(0)
    _CLEAR.write_text("5")  # the peak is now what is resident
    before = _resident("VmHWM")
    contender.cycle()
    pages = _resident("VmHWM") - before
    tracemalloc.start()
    contender.cycle()
    return max(pages, tracemalloc.get_traced_memory()[1])


def _resident(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise RuntimeError(f"{_STATUS} has no {field}")
