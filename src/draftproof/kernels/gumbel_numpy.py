"""Verification by common noise, vectorised over the batch, in NumPy.

The noise of a position is made where it is read, from the request's seed: nothing of size
[B, K, V] is ever held.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch
from draftproof.kernels.call_numpy import Call
from draftproof.kernels.faults_numpy import row_status
from draftproof.noise import token_uniforms, uniform
from draftproof.types import IntArray
from draftproof.validation import TARGET

__all__ = ["uniform", "verify_chain"]

Floats = npt.NDArray[np.float64]


def verify_chain(
    batch: Batch,
    rule: str,
    seeds: npt.NDArray[np.uint64],
    starts: IntArray,
    *,
    validate: str,
    num_threads: int | None = None,
) -> tuple[IntArray, IntArray, IntArray]:
    """Verify a batch; arguments and results are `draftproof.reference.batch.verify_chain`'s."""

    def winners(rows: IntArray, position: int) -> IntArray:
        stored = batch.target_probs[batch.target_index(rows, position)]
        if call.judge:
            call.status[rows] = row_status(stored, TARGET)
        noise = token_uniforms(seeds[rows], starts[rows] + position, batch.vocabulary)
        return _race_winners(widen(stored), noise)

    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        call = Call(batch, validate)
        call.decide(call.match_greedy(), lambda rows: call.match(rows, winners))
    return call.result()


def _race_winners(weights: Floats, u: Floats) -> IntArray:
    """Let the tokens of each row [R, V] race like the reference's `race_winner`; -1 for None."""
    runs = weights > 0
    arrival = np.where(runs, -np.log1p(-u) / weights, np.inf)
    tokens = np.argmin(arrival, axis=1)
    each = np.arange(len(weights))
    late = np.isinf(arrival[each, tokens])
    tokens[late] = np.argmax(runs[late], axis=1)
    won = weights[each, tokens]
    return np.where((won > 0) & (won < np.inf), tokens, -1)
