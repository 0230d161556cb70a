"""Token-level speculative sampling position by position, for laws that are made when they are read.

The arithmetic is `draftproof.kernels.chain_numpy`'s; no row behind a row's first rejection is read.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch
from draftproof.kernels.call_numpy import Call, inverse_cdf
from draftproof.kernels.faults_numpy import entry_status, uniform_status
from draftproof.kernels.laws_numpy import dense_draft_rows
from draftproof.noise import uniform
from draftproof.types import IntArray
from draftproof.validation import DRAFT, TARGET

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
        choose = functools.partial(_tokens, call, accept, final)
        call.decide(rows, lambda rows: call.match(rows, choose))
    return call.result()


def _tokens(call: Call, accept: Floats, final: Floats, rows: IntArray, position: int) -> IntArray:
    """The draft where it is accepted, else the recovered token; behind all drafts the bonus.

    A recovered token is never the draft: the residual there is 0. Where all of it is, the row's
    status stops it.
    """
    batch = call.batch
    tokens = np.full(len(rows), -1, dtype=np.int64)
    drafted = np.flatnonzero(position < batch.num_draft[rows])
    if len(drafted):
        tokens[drafted] = _judged_drafts(call, accept, final, rows[drafted], position)
    ended = np.flatnonzero(position == batch.num_draft[rows])
    ended = ended[_well(call, final, rows[ended], position, recovered=False)]
    at = rows[ended]
    tokens[ended] = inverse_cdf(
        widen(batch.target_probs[batch.target_index(at, np.full_like(at, position))]), final[at]
    )
    return tokens


def _judged_drafts(
    call: Call, accept: Floats, final: Floats, rows: IntArray, position: int
) -> IntArray:
    batch, each = call.batch, np.arange(len(rows))
    positions = np.full_like(rows, position)
    index = batch.draft_index(rows, positions)
    tokens: IntArray = batch.draft_token_ids[index].copy()
    laws = widen(batch.target_probs[batch.target_index(rows, positions)])
    drafts = dense_draft_rows(batch, rows, positions)
    p, q, u = laws[each, tokens], drafts[each, tokens], accept[index]
    if call.judge:
        status = uniform_status(u)
        for numbers, side in ((p, TARGET), (q, DRAFT)):
            status = np.where(status == 0, entry_status(numbers, side), status)
        call.status[rows] = status
    well = call.status[rows] == 0
    rejected = np.flatnonzero(well & ~((p > 0) & ((p >= q) | (u * q < p))))
    tokens[~well] = tokens[rejected] = -1
    rejected = rejected[_well(call, final, rows[rejected], position, recovered=True)]
    at = rows[rejected]
    difference = laws[rejected] - drafts[rejected]
    call.recover(at, np.where(difference > 0, difference, 0), laws[rejected], final)
    tokens[rejected] = call.last_token[at]
    return tokens


def _well(
    call: Call, final: Floats, rows: IntArray, position: int, recovered: bool
) -> npt.NDArray[np.bool_]:
    """Judge what the last tokens of rows are drawn by and from."""
    if not call.judge:
        return np.ones(len(rows), dtype=np.bool_)
    call.status[rows] = uniform_status(final[rows])
    well: npt.NDArray[np.bool_] = call.status[rows] == 0
    at = rows[well]
    well[well] = call.judge_laws(at, np.full_like(at, position), recovered)
    return well
