"""Chain verification vectorised over the batch, in NumPy: for machines without a compiler.

The arithmetic is the reference's, operation for operation, so the tokens are equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch
from draftproof.kernels.faults_numpy import (
    entry_status,
    first_in_row,
    length_and_id_status,
    row_status,
    sparse_id_status,
    uniform_status,
    valid_row_status,
)
from draftproof.kernels.laws_numpy import dense_draft_rows, drafted_entries
from draftproof.noise import uniform
from draftproof.types import IntArray, RowStatus
from draftproof.validation import DRAFT, TARGET

__all__ = ["uniform", "verify_chain"]

Floats = npt.NDArray[np.float64]

_CHUNK_NUMBERS = 1 << 18
"""float64 numbers of one temporary: small enough for the cache, large enough to amortise calls."""
_FEW_COLUMNS = 32
"""Up to this V a loop over columns beats NumPy's running sum along short rows."""


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
    status = length_and_id_status(batch)
    if validate == "full":
        numbers = (batch.max_draft + 1) * batch.vocabulary
        with np.errstate(invalid="ignore", over="ignore"):
            for rows in _chunks(np.flatnonzero(status == 0), numbers):
                status[rows] = valid_row_status(batch, rows)
    call = _Call(batch, accept, final, validate != "off", status)
    decided = status == 0
    greedy = np.zeros(batch.size, dtype=np.bool_) if batch.greedy is None else batch.greedy
    with np.errstate(invalid="ignore", over="ignore"):
        call.match(np.flatnonzero(decided & greedy), call.best_tokens)
        sampled = np.flatnonzero(decided & ~greedy)
        if rule == "exact-match":
            call.match(sampled, call.sampled_tokens)
        else:
            call.token(sampled)
    return call.result()


class _Call:
    """One call's inputs, and what its rows emit so far."""

    def __init__(
        self, batch: Batch, accept: Floats, final: Floats, judge: bool, status: IntArray
    ) -> None:
        self.batch = batch
        self.accept = accept
        self.final = final
        self.judge = judge
        self.status = status
        self.num_accepted = np.zeros(batch.size, dtype=np.int64)
        self.last_token = np.full(batch.size, -1, dtype=np.int64)

    def result(self) -> tuple[IntArray, IntArray, IntArray]:
        """Lay out the emitted tokens: accepted drafts, the last token, padding."""
        batch = self.batch
        decided = self.status <= RowStatus.ZERO_RESIDUAL
        token_ids = np.full((batch.size, batch.max_draft + 1), -1, dtype=np.int64)
        accepted = np.where(decided, self.num_accepted, 0)
        rows, positions = np.nonzero(np.arange(batch.max_draft) < accepted[:, None])
        token_ids[rows, positions] = batch.draft_token_ids[batch.draft_index(rows, positions)]
        emitting = np.flatnonzero(decided)
        token_ids[emitting, accepted[emitting]] = self.last_token[emitting]
        return token_ids, np.where(decided, accepted + 1, 0), self.status

    def token(self, rows: IntArray) -> None:
        """Token-level speculative sampling: all accept tests at once, then the last tokens."""
        batch = self.batch
        lengths = batch.num_draft[rows]
        valid = np.arange(batch.max_draft) < lengths[:, None]
        which, positions = np.nonzero(valid)
        at = batch.draft_index(rows[which], positions)
        drafts = batch.draft_token_ids[at]
        p = widen(batch.target_probs[(*batch.target_index(rows[which], positions), drafts)])
        q = drafted_entries(batch, rows[which], positions)
        u = self.accept[at]
        accepts = np.zeros(valid.shape, dtype=np.bool_)
        accepts[which, positions] = (p > 0) & ((p >= q) | (u * q < p))
        tau = np.logical_and.accumulate(accepts, axis=1).sum(axis=1)
        self.num_accepted[rows] = tau
        if self.judge:
            read = positions <= tau[which]
            faults = uniform_status(u)
            faults = np.where(faults == 0, entry_status(p, TARGET), faults)
            faults = np.where(faults == 0, entry_status(q, DRAFT), faults)
            entry_faults = first_in_row(np.where(read, faults, 0), which, len(rows))
            self.status[rows] = np.where(
                entry_faults == 0, uniform_status(self.final[rows]), entry_faults
            )
        open_rows = self.status[rows] == 0
        for recovered in (False, True):
            group = np.flatnonzero(open_rows & ((tau < lengths) == recovered))
            for part in _chunks(group, batch.vocabulary):
                self.draw(rows[part], tau[part], self.final[rows[part]], recovered)

    def draw(self, rows: IntArray, positions: IntArray, u: Floats, recovered: bool) -> None:
        """Draw the last token of each row from its residual, or from p."""
        batch = self.batch
        p = widen(batch.target_probs[batch.target_index(rows, positions)])
        weights, zero = p, np.zeros(len(rows), dtype=np.bool_)
        if recovered:
            difference = p - dense_draft_rows(batch, rows, positions)
            weights = np.where(difference > 0, difference, 0)
            zero = ~(weights.sum(axis=1) > 0)
            weights[zero] = p[zero]
        tokens = _inverse_cdf(weights, u)
        unjudged = np.ones(len(rows), dtype=np.bool_) if self.judge else tokens < 0
        status = np.zeros(len(rows), dtype=np.int64)
        status[unjudged] = self.rows_read_status(rows[unjudged], positions[unjudged], recovered)
        self.last_token[rows] = tokens
        self.status[rows] = np.where(status == 0, zero * RowStatus.ZERO_RESIDUAL, status)

    def rows_read_status(self, rows: IntArray, positions: IntArray, recovered: bool) -> IntArray:
        """Judge the rows behind a last draw: p's, then q's where it was read."""
        batch = self.batch
        status = row_status(batch.target_probs[batch.target_index(rows, positions)], TARGET)
        if recovered and batch.draft_probs is not None:
            at = batch.draft_index(rows, positions)
            ids = None if batch.sparse_ids is None else batch.sparse_ids[at]
            draft = sparse_id_status(ids, batch.vocabulary, len(rows))
            draft = np.where(draft == 0, row_status(batch.draft_probs[at], DRAFT, ids), draft)
            status = np.where(status == 0, draft, status)
        return status

    def match(self, rows: IntArray, choose: _Choose) -> None:
        """Accept drafts while they equal the target's own choice, which is emitted at the end."""
        batch = self.batch
        for position in range(batch.max_draft + 1):
            if not len(rows):
                return
            chosen = np.full(len(rows), -1, dtype=np.int64)
            for part in _chunks(np.arange(len(rows)), batch.vocabulary):
                chosen[part] = choose(rows[part], position)
            self.last_token[rows] = chosen
            drafted = position < batch.num_draft[rows]
            at = batch.draft_index(rows[drafted], np.full(drafted.sum(), position))
            goes_on = drafted.copy()
            goes_on[drafted] = batch.draft_token_ids[at] == chosen[drafted]
            goes_on &= self.status[rows] == 0
            rows = rows[goes_on]
            self.num_accepted[rows] += 1

    def best_tokens(self, rows: IntArray, position: int) -> IntArray:
        """The target's argmax; a row with nothing above -inf gets its status."""
        p = widen(self.batch.target_probs[self.batch.target_index(rows, position)])
        p[np.isnan(p)] = -np.inf
        tokens = np.argmax(p, axis=1)
        empty = p[np.arange(len(rows)), tokens] == -np.inf
        self.status[rows[empty]] = RowStatus.TARGET_NOT_FINITE
        return np.asarray(tokens)

    def sampled_tokens(self, rows: IntArray, position: int) -> IntArray:
        """A sample of the target at this position; bad rows get their status."""
        batch = self.batch
        drafted = position < batch.num_draft[rows]
        u = self.final[rows]
        at = batch.draft_index(rows[drafted], np.full(drafted.sum(), position))
        u[drafted] = self.accept[at]
        stored = batch.target_probs[batch.target_index(rows, position)]
        tokens = _inverse_cdf(widen(stored), u)
        status = row_status(stored, TARGET)
        if self.judge:
            coin = uniform_status(u)
            status = np.where(coin == 0, status, coin)
        else:
            status = np.where(tokens < 0, status, 0)
        self.status[rows] = status
        return tokens


class _Choose(Protocol):
    """Type of the two ways in which the target chooses a token: f(rows, position) -> tokens."""

    def __call__(self, rows: IntArray, position: int) -> IntArray: ...


def _inverse_cdf(weights: Floats, u: Floats) -> IntArray:
    """Draw a token of each row [R, V] like the reference's `inverse_cdf`, with -1 for None."""
    vocabulary = weights.shape[1]
    if vocabulary <= _FEW_COLUMNS:
        running = np.zeros(len(weights))
        cumulative = np.empty((vocabulary, len(weights)))
        for column in range(vocabulary):
            running = running + weights[:, column]
            cumulative[column] = running
        total = cumulative[-1]
        tokens = (cumulative <= u * total).sum(axis=0)
    else:
        sums = np.cumsum(weights, axis=1)
        total = sums[:, -1]
        tokens = (sums <= (u * total)[:, None]).sum(axis=1)
    for row in np.flatnonzero(tokens == vocabulary):
        tokens[row] = np.flatnonzero(weights[row])[-1] if total[row] > 0 else -1
    tokens[~((total > 0) & np.isfinite(total))] = -1
    return np.asarray(tokens)


def _chunks(indices: IntArray, numbers_each: int) -> Iterator[IntArray]:
    step = max(1, _CHUNK_NUMBERS // max(1, numbers_each))
    for start in range(0, len(indices), step):
        yield indices[start : start + step]
