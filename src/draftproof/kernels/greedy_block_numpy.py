"""Greedy block verification vectorised over the batch, in NumPy.

The arithmetic is `draftproof.reference.greedy_block`'s, operation for operation. Positions that
the state discounts are read from the first one up, as far as the drafts are possible; then rows
are read as in `draftproof.kernels.block_numpy`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch
from draftproof.kernels.block_numpy import keep_block, residuals, spread
from draftproof.kernels.call_numpy import Call, chunks, masses
from draftproof.kernels.laws_numpy import dense_draft_rows
from draftproof.noise import uniform
from draftproof.state import GreedyBlockState
from draftproof.types import IntArray, RowStatus

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
) -> tuple[IntArray, IntArray, IntArray, GreedyBlockState]:
    """Verify a batch; arguments and results are `draftproof.reference.batch.verify_chain`'s."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        call = Call(batch, validate)
        rounds = _Rounds(call, accept, final)
        call.decide(call.match_greedy(), rounds.verify)
        return *call.result(), rounds.state_after()


class _Rounds:
    """Each row's round on top of what its earlier rounds have left.

    Attributes:
        remaining: [B, L], of each discount at position 0.
        factor: [K+1, B, L], of each discount at each position along the drafts.
        ratio: [B, K+1], the joint ratio at each position.
    """

    def __init__(self, call: Call, accept: Floats, final: Floats) -> None:
        self.call, self.accept, self.final = call, accept, final
        size, longest = call.batch.size, call.batch.max_draft
        state = call.batch.state or GreedyBlockState.of_rows([()] * size)
        self.remaining = state.remaining
        self.factor = np.repeat(state.factor[None], longest + 1, axis=0)
        self.ratio = np.ones((size, longest + 1))

    def verify(self, rows: IntArray) -> None:
        """Decide rows by the greedy block rule."""
        call, batch = self.call, self.call.batch
        drafted = call.drafted(rows, self.accept)
        call.judge_drafted(rows, drafted, True, self.final)
        p, q, u = spread(drafted, len(rows), batch.max_draft)
        for i in range(batch.max_draft):
            p[:, i] = self.advance(rows, i, p[:, i], q[:, i])
            r = self.ratio[rows, i]
            ratio = np.where(q[:, i] > 0, r * (p[:, i] / q[:, i]), np.inf)
            self.ratio[rows, i + 1] = np.where((r == 0) | (p[:, i] == 0), 0, ratio)

        def left(part: IntArray, position: int) -> tuple[Floats, Floats]:
            laws, drafts, _ = self.laws(rows[part], np.full(len(part), position))
            r = self.ratio[rows[part], position, None]
            return residuals(np.where(r >= 1, laws, r * laws), drafts / np.maximum(r, 1)), laws

        keep_block(call, rows, self.ratio[rows], u, self.final, left)

    def advance(self, rows: IntArray, position: int, p: Floats, q: Floats) -> Floats:
        """Return p at each row's draft with the discounts taken off, and move these on."""
        self.factor[position + 1, rows] = self.factor[position, rows]
        holds = (self.remaining[rows] > position) & (self.factor[position, rows] > 0)
        reads = holds.any(axis=1) & (position < self.call.batch.num_draft[rows])
        reads &= (self.call.status[rows] == 0) & (self.ratio[rows, position] != 0)
        for part in chunks(np.flatnonzero(reads), self.call.batch.vocabulary):
            at, positions = rows[part], np.full(len(part), position)
            part = part[self.call.judge_laws(at, positions, recovered=True)]
            at, positions = rows[part], positions[: len(part)]
            tokens = self.call.batch.draft_token_ids[self.call.batch.draft_index(at, positions)]
            laws, _, below = self.laws(at, positions, tokens)
            self.factor[position + 1, at] = _moved(self.factor[position, at], below, q[part])
            p[part] = laws[np.arange(len(part)), tokens]
        return p

    def laws(
        self, rows: IntArray, positions: IntArray, tokens: IntArray | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """Return discounted and draft laws [R, V], and p of tokens below each discount [R, L]."""
        batch, each = self.call.batch, np.arange(len(rows))
        laws = widen(batch.target_probs[batch.target_index(rows, positions)])
        drafts = dense_draft_rows(batch, rows, positions)
        below = np.ones((len(rows), self.remaining.shape[1]))
        for place in range(self.remaining.shape[1]):
            if tokens is not None:
                below[:, place] = laws[each, tokens]
            d = self.factor[positions, rows, place, None]
            weights = residuals(laws, d * drafts)
            total = masses(weights)[:, None]
            holds = (self.remaining[rows, place] > positions)[:, None] & (d > 0)
            holds &= (d < 1) & (total > 0)
            laws = np.where(holds, weights / total, laws)
        return laws, drafts, below

    def state_after(self) -> GreedyBlockState:
        """Move the discounts on by what each row has emitted, and add that of its rejection."""
        call, batch = self.call, self.call.batch
        decided = call.status <= RowStatus.ZERO_RESIDUAL
        sampled = decided if batch.greedy is None else decided & ~batch.greedy
        remaining = np.where(decided[:, None], 0, self.remaining)
        remaining = np.concatenate([remaining, np.zeros((batch.size, 1), dtype=np.int64)], axis=1)
        factor = np.concatenate([self.factor[0], np.zeros((batch.size, 1))], axis=1)
        rejected = np.flatnonzero(sampled & (call.num_accepted < batch.num_draft))
        for rows in chunks(rejected, batch.vocabulary):
            tau, tokens = call.num_accepted[rows], call.last_token[rows]
            laws, drafts, below = self.laws(rows, tau, tokens)
            each = np.arange(len(rows))
            p, q = laws[each, tokens], drafts[each, tokens]
            factor[rows, :-1] = _moved(self.factor[tau, rows], below, q)
            factor[rows, -1] = q / (self.ratio[rows, tau] * p)
            remaining[rows, :-1] = self.remaining[rows] - tau[:, None] - 1
            remaining[rows, -1] = batch.num_draft[rows] - tau - 1
        return GreedyBlockState.of_discounts(remaining, factor)


def _moved(d: Floats, below: Floats, q: Floats) -> Floats:
    """Return [R, L] discounts after one more token: d q/p, or 1 where p is 0."""
    return np.where(below > 0, d * q[:, None] / below, 1)
