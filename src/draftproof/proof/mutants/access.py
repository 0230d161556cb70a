"""How much of a verifier's randomness a judge gets hold of: the same fault in three subjects.

::

    driven   all of it: the uniforms themselves
    rng      a seed: the subject takes one integer from each generator it is given
    own      nothing: the subject has entropy of its own
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from draftproof.proof.mutants.registry import Mutant
from draftproof.proof.mutants.skeleton import Array, Verify
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject, load

__all__ = ["ACCESSES", "with_access"]

ACCESSES = ("driven", "rng", "own")


def with_access(mutant: Mutant, access: str) -> Subject:
    """Make a subject of a mutant whose randomness is reached so far and no further."""
    if access == "driven":
        return load(mutant.spec)
    call = (_SeedOnly if access == "rng" else _OwnEntropy)(mutant.build())
    return Subject(f"{mutant.name} ({access})", Contract.RAGGED, call, None, mutant.sampled_law)


class _SeedOnly:
    """Seeds a generator of its own from each that it is given."""

    def __init__(self, verify: Verify) -> None:
        self._verify = verify
        self._given: np.random.Generator | None = None

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        if rng is not self._given:
            self._given, self._own = rng, np.random.default_rng(rng.integers(1 << 62))
        return self._verify(draft, q, p, num_draft, self._own)


class _OwnEntropy:
    """Has a generator of its own, and so has each copy; they are numbered, to be repeatable."""

    def __init__(self, verify: Verify, numbers: Iterator[int] | None = None) -> None:
        self._verify, self._numbers = verify, numbers or itertools.count()
        self._own = np.random.default_rng(next(self._numbers))

    def __deepcopy__(self, memo: Any) -> _OwnEntropy:
        return _OwnEntropy(copy.deepcopy(self._verify, memo), self._numbers)

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        return self._verify(draft, q, p, num_draft, self._own)
