"""Chain verification in C++: the door to ``csrc/chain.hpp``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof import _native
from draftproof.batch import Batch
from draftproof.kernels.noise_native import uniform
from draftproof.kernels.threads import available_threads
from draftproof.rules import PLAIN_RULES
from draftproof.state import GreedyBlockState
from draftproof.types import IntArray, VerifyResult
from draftproof.validation import VALIDATE, mass_tolerance

__all__ = ["column_of", "uniform", "verify_chain", "verify_plain"]

Floats = npt.NDArray[np.float64]
_RULES = (*PLAIN_RULES, "gumbel", "greedy-block")
"""In the order of the kernel's enum."""


def verify_chain(
    batch: Batch,
    rule: str,
    accept: npt.NDArray[Any],
    final: npt.NDArray[Any],
    *,
    validate: str,
    num_threads: int | None = None,
) -> tuple[IntArray, IntArray, IntArray] | tuple[IntArray, IntArray, IntArray, GreedyBlockState]:
    """Verify a batch; arguments and results are `draftproof.reference.batch.verify_chain`'s.

    Reads the drafted entries up to each row's first rejection and the one or two rows of its last
    draw (gumbel: rows of p up to the first mismatch, whose noise is made where it is read; block:
    see `draftproof.touched`); allocates the result alone (and, with a ``draft_to_target``, its
    inverse, and for greedy-block two rows in float64 for each thread).
    """
    size = len(batch.num_draft)
    token_ids = np.empty((size, batch.max_draft + 1), dtype=np.int64)
    num_emitted, status = np.empty((2, size), dtype=np.int64)
    discounts = _discounts(batch) if rule == "greedy-block" else None
    draft_tolerance = 0.0
    if batch.draft_probs is not None:
        draft_tolerance = mass_tolerance(batch.draft_probs.dtype, batch.draft_probs.shape[-1])
    _native.verify_chain(
        batch.draft_token_ids,
        batch.drafter_token_ids,
        batch.draft_probs,
        batch.sparse_ids,
        column_of(batch),
        batch.target_probs,
        batch.num_draft,
        batch.cu_num_draft,
        batch.greedy,
        # A generator of one's own may hand out anything.
        np.ascontiguousarray(accept, np.uint64 if rule == "gumbel" else np.float64),
        np.ascontiguousarray(final, np.int64 if rule == "gumbel" else np.float64),
        batch.max_draft,
        batch.drafter_vocabulary,
        _RULES.index(rule),
        VALIDATE.index(validate),
        mass_tolerance(batch.target_probs.dtype, batch.vocabulary),
        draft_tolerance,
        num_threads,
        available_threads,
        token_ids,
        num_emitted,
        status,
        *(discounts or (None,) * 4),
    )
    if discounts is None:
        return token_ids, num_emitted, status
    return token_ids, num_emitted, status, GreedyBlockState.of_discounts(*discounts[2:])


def _discounts(batch: Batch) -> tuple[IntArray, Floats, IntArray, Floats]:
    """Return the discounts of a batch, ``remaining`` and ``factor`` [B, L], and room for L + 1."""
    state = batch.state or GreedyBlockState.of_rows([()] * batch.size)
    size, places = state.remaining.shape
    return (
        np.ascontiguousarray(state.remaining, np.int64),
        np.ascontiguousarray(state.factor, np.float64),
        np.zeros((size, places + 1), dtype=np.int64),
        np.zeros((size, places + 1)),
    )


def column_of(batch: Batch) -> npt.NDArray[np.int32] | None:
    """Return the column of each target id in the rows of a mapped draft law, -1 without one."""
    if batch.draft_to_target is None or batch.draft_probs is None or batch.sparse_ids is not None:
        return None
    columns = np.full(batch.vocabulary, -1, dtype=np.int32)
    columns[batch.draft_to_target] = np.arange(batch.drafter_vocabulary)
    return columns


_native.set_surroundings(
    VerifyResult, np.random.Generator, mass_tolerance, available_threads, PLAIN_RULES, VALIDATE
)
verify_plain = _native.verify_plain
"""`draftproof.verify` for what engines mostly pass, with little ado; None where it declines."""
