"""Chain verification vectorised over the batch, in NumPy: for machines without a compiler.

The arithmetic is the reference's, operation for operation, so the tokens are equal bit for bit.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch
from draftproof.kernels.call_numpy import Call, chunks, inverse_cdf
from draftproof.kernels.faults_numpy import row_status, uniform_status
from draftproof.kernels.laws_numpy import dense_draft_rows
from draftproof.noise import uniform
from draftproof.types import IntArray
from draftproof.validation import TARGET

__all__ = ["uniform", "verify_chain"]

Floats = npt.NDArray[np.float64]


def verify_chain(
    batch: Batch,
    rule: str,
    accept: Floats,
    final: Floats,
    *,
    validate: str,
    num_threads: int | None = None,
) -> tuple[IntArray, IntArray, IntArray]:
    """Verify a batch; arguments and results are `draftproof.reference.batch.verify_chain`'s."""
    with np.errstate(invalid="ignore", over="ignore"):
        call = Call(batch, validate)
        rows = call.match_greedy()
        if rule == "exact-match":
            choose = functools.partial(_sampled_tokens, call, accept, final)
            call.decide(rows, lambda rows: call.match(rows, choose))
        else:
            call.decide(rows, functools.partial(_token, call, accept, final))
    return call.result()


def _token(call: Call, accept: Floats, final: Floats, rows: IntArray) -> None:
    """Token-level speculative sampling: all accept tests at once, then the last tokens."""
    lengths = call.batch.num_draft[rows]
    drafted = call.drafted(rows, accept)
    which, positions, p, q, u = drafted
    accepts = np.zeros((len(rows), call.batch.max_draft), dtype=np.bool_)
    accepts[which, positions] = (p > 0) & ((p >= q) | (u * q < p))
    tau = np.logical_and.accumulate(accepts, axis=1).sum(axis=1)
    call.num_accepted[rows] = tau
    call.judge_drafted(rows, drafted, positions <= tau[which], final)
    well = call.status[rows] == 0
    call.draw_bonus(rows[well & (tau == lengths)], final)
    for part in chunks(np.flatnonzero(well & (tau < lengths)), call.batch.vocabulary):
        part = part[call.judge_laws(rows[part], tau[part], recovered=True)]
        at = rows[part]
        laws = widen(call.batch.target_probs[call.batch.target_index(at, tau[part])])
        difference = laws - dense_draft_rows(call.batch, at, tau[part])
        call.recover(at, np.where(difference > 0, difference, 0), laws, final)


def _sampled_tokens(
    call: Call, accept: Floats, final: Floats, rows: IntArray, position: int
) -> IntArray:
    """A sample of the target at this position; bad rows get their status."""
    batch = call.batch
    drafted = position < batch.num_draft[rows]
    u = final[rows]
    at = batch.draft_index(rows[drafted], np.full(drafted.sum(), position))
    u[drafted] = accept[at]
    stored = batch.target_probs[batch.target_index(rows, position)]
    if call.judge:
        coin = uniform_status(u)
        call.status[rows] = np.where(coin == 0, row_status(stored, TARGET), coin)
    return inverse_cdf(widen(stored), u)
