"""The first call of a subject that has made none: what a program that starts anew would see.

A generator that a subject seeds when it is loaded gives other numbers in every call, and the same
ones in every run; only a fresh start shows it.
"""

from __future__ import annotations

import copy
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.subjects.subject import Subject, load

__all__ = ["first_call", "main"]

Array = npt.NDArray[Any]
_START = (
    "import sys; sys.path[:] = {path!r}; from draftproof.proof.subjects.fresh import main; main()"
)


def first_call(
    subject: Subject, arguments: Sequence[Array], seed: int, timeout: float
) -> tuple[Array, Array] | None:
    """Return what a fresh subject gives for ``arguments`` and a new generator of ``seed``.

    ::

        a mutant                   is built anew
        what `load` finds again    runs in an interpreter of its own
        any other object           is copied, with its state; functions cannot be

    Args:
        subject: is not called.
        arguments: draft, q, p and num_draft.
        seed: of the generator.
        timeout: seconds for the interpreter.

    Returns:
        The emission; None if there is no fresh start, or it failed.

    Raises:
        TimeoutError: the interpreter did not end in time.
    """
    if subject.spec is not None and not subject.spec.startswith("mutant:"):
        return _in_a_new_interpreter(subject, arguments, seed, timeout)
    if subject.spec is not None:
        fresh = load(subject.spec, subject.contract)
    else:
        try:
            fresh = replace(subject, call=copy.deepcopy(subject.call))
        except Exception:
            return None
        if fresh.call is subject.call:
            return None
    draft, q, p, num_draft = arguments
    return fresh.verify(draft, q, p, num_draft, np.random.default_rng(seed))


def _in_a_new_interpreter(
    subject: Subject, arguments: Sequence[Array], seed: int, timeout: float
) -> tuple[Array, Array] | None:
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder, "asked.npz"), Path(folder, "answer.npz")
        np.savez(asked, *arguments)
        words = [str(subject.spec), subject.contract.value, str(seed), str(asked), str(answer)]
        try:
            subprocess.run(
                [sys.executable, "-c", _START.format(path=sys.path), *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=timeout,
                check=True,
            )
            with np.load(answer) as arrays:
                return arrays["arr_0"], arrays["arr_1"]
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"a fresh start takes more than {timeout:g} s") from None
        except (subprocess.SubprocessError, OSError):
            return None


def main() -> None:
    """The new interpreter's part: load, call once, save."""
    spec, contract, seed, asked, answer = sys.argv[1:]
    with np.load(asked) as arrays:
        draft, q, p, num_draft = (arrays[f"arr_{i}"] for i in range(4))
    rng = np.random.default_rng(int(seed))
    np.savez(answer, *load(spec, contract).verify(draft, q, p, num_draft, rng))
