"""The floor: a bare C pass over exactly the rows that a verification must read."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from bench.inputs import Inputs, Ints
from bench.reads import reads_of_cycle

__all__ = ["Floor", "compile_floor"]

_SOURCE = Path(__file__).with_name("floor.c")
_FLAGS = ("-O3", "-march=native", "-fopenmp-simd", "-shared", "-fPIC")


def compile_floor() -> ctypes.CDLL:
    """Compile ``floor.c`` for this machine and load it."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "floor.so"
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, *_FLAGS, str(_SOURCE), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))


class Floor:
    """A contender that knows beforehand which rows to read, and draws nothing.

    Attributes:
        sums: float64, the masses of the rows of all calls that the last cycle summed.
    """

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs  # the addresses point into it
        cycle = reads_of_cycle(inputs)
        self._num_emitted = [reads.num_emitted for reads in cycle]
        self._p = np.concatenate([reads.p_at for reads in cycle])
        self._q = np.concatenate([reads.q_at for reads in cycle])
        self.sums = np.empty(len(self._p))
        self._run = compile_floor()[f"pass_{inputs.case.dtype}"]
        self._run.restype = None
        self._arguments = (
            ctypes.c_void_p(self._p.ctypes.data),
            ctypes.c_void_p(self._q.ctypes.data),
            ctypes.c_int64(len(self._p)),
            ctypes.c_int64(inputs.case.V),
            ctypes.c_void_p(self.sums.ctypes.data),
        )

    def cycle(self) -> list[Ints]:
        """Read the rows of all the cycle's calls."""
        self._run(*self._arguments)
        return self._num_emitted

    def rewind(self) -> None:
        """Do nothing: there is no randomness."""
