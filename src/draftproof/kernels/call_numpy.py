"""What the NumPy kernels share: the rows of one call, what is wrong with them, what they emit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

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
from draftproof.kernels.laws_numpy import drafted_entries
from draftproof.types import IntArray, RowStatus
from draftproof.validation import DRAFT, TARGET

__all__ = ["Call", "Drafted", "chunks", "inverse_cdf", "masses"]

Floats = npt.NDArray[np.float64]

_CHUNK_NUMBERS = 1 << 18
"""float64 numbers of one temporary: small enough for the cache, large enough to amortise calls."""
_FEW_COLUMNS = 32
"""Up to this V a loop over columns beats NumPy's running sum along short rows."""


class _Choose(Protocol):
    """How the target chooses a token of its own: f(rows, position) -> tokens."""

    def __call__(self, rows: IntArray, position: int) -> IntArray: ...


class Drafted(NamedTuple):
    """The drafts of some rows, one behind the other: which of the rows, where, p, q and u."""

    which: IntArray
    positions: IntArray
    p: Floats
    q: Floats
    u: Floats


class Call:
    """One call's inputs, and what its rows emit so far.

    Attributes:
        batch: the inputs.
        judge: whether the numbers that a rule reads are judged.
        status: [B], a row with a fault is left alone.
        num_accepted, last_token: [B], meaningful where the status allows.
    """

    def __init__(self, batch: Batch, validate: str) -> None:
        self.batch = batch
        self.judge = validate != "off"
        self.status = length_and_id_status(batch)
        self.num_accepted = np.zeros(batch.size, dtype=np.int64)
        self.last_token = np.full(batch.size, -1, dtype=np.int64)
        if validate == "full":
            numbers = (batch.max_draft + 1) * batch.vocabulary
            for rows in chunks(np.flatnonzero(self.status == 0), numbers):
                self.status[rows] = valid_row_status(batch, rows)

    def match_greedy(self) -> IntArray:
        """Decide the greedy rows, and return the others that are open."""
        greedy = self.batch.greedy
        if greedy is None:
            return np.flatnonzero(self.status == 0)
        rows = np.flatnonzero((self.status == 0) & ~greedy)
        self.match(np.flatnonzero((self.status == 0) & greedy), self.best_tokens)
        return rows

    def decide(self, rows: IntArray, rule: Callable[[IntArray], None]) -> None:
        """Let a rule decide rows; where nothing was judged and none could emit, judge them."""
        rule(rows)
        stuck = rows[(self.last_token[rows] < 0) & (self.status[rows] <= RowStatus.ZERO_RESIDUAL)]
        if len(stuck):
            self.judge = True
            self.status[stuck] = self.num_accepted[stuck] = 0
            rule(stuck)

    def drafted(self, rows: IntArray, accept: Floats) -> Drafted:
        """Gather the numbers at every draft of the rows."""
        batch = self.batch
        which, positions = np.nonzero(np.arange(batch.max_draft) < batch.num_draft[rows][:, None])
        at = batch.draft_index(rows[which], positions)
        target_at = batch.target_index(rows[which], positions)
        p = widen(batch.target_probs[(*target_at, batch.draft_token_ids[at])])
        q = drafted_entries(batch, rows[which], positions)
        return Drafted(which, positions, p, q, accept[at])

    def judge_drafted(
        self, rows: IntArray, drafted: Drafted, read: npt.NDArray[np.bool_] | bool, final: Floats
    ) -> None:
        """Judge the numbers at the drafts that were read, and the uniform of the last token."""
        if not self.judge:
            return
        faults = uniform_status(drafted.u)
        faults = np.where(faults == 0, entry_status(drafted.p, TARGET), faults)
        faults = np.where(faults == 0, entry_status(drafted.q, DRAFT), faults)
        first = first_in_row(np.where(read, faults, 0), drafted.which, len(rows))
        self.status[rows] = np.where(first == 0, uniform_status(final[rows]), first)

    def judge_laws(
        self, rows: IntArray, positions: IntArray, recovered: bool
    ) -> npt.NDArray[np.bool_]:
        """Judge whole laws, p's and then q's where it was read; return whether they are well."""
        if not self.judge:
            return np.ones(len(rows), dtype=np.bool_)
        batch = self.batch
        status = row_status(batch.target_probs[batch.target_index(rows, positions)], TARGET)
        if recovered and batch.draft_probs is not None:
            at = batch.draft_index(rows, positions)
            ids = None if batch.sparse_ids is None else batch.sparse_ids[at]
            draft = sparse_id_status(ids, batch.vocabulary, len(rows))
            draft = np.where(draft == 0, row_status(batch.draft_probs[at], DRAFT, ids), draft)
            status = np.where(status == 0, draft, status)
        self.status[rows] = status
        return np.asarray(status == 0)

    def recover(self, rows: IntArray, weights: Floats, p: Floats, final: Floats) -> None:
        """Draw each row's last token from its residual, or from p if that is 0 everywhere."""
        zero = ~(masses(weights) > 0)
        weights[zero] = p[zero]
        self.last_token[rows] = inverse_cdf(weights, final[rows])
        self.status[rows] = zero * RowStatus.ZERO_RESIDUAL

    def draw_bonus(self, rows: IntArray, final: Floats) -> None:
        """Judge the law behind all of a row's drafts, and draw from it."""
        positions = self.batch.num_draft[rows]
        self.num_accepted[rows] = positions
        for part in chunks(np.arange(len(rows)), self.batch.vocabulary):
            self.judge_laws(rows[part], positions[part], recovered=False)
            p = widen(self.batch.target_probs[self.batch.target_index(rows[part], positions[part])])
            self.last_token[rows[part]] = inverse_cdf(p, final[rows[part]])

    def match(self, rows: IntArray, choose: _Choose) -> None:
        """Accept drafts while they equal the target's own choice, which is emitted at the end."""
        batch = self.batch
        for position in range(batch.max_draft + 1):
            if not len(rows):
                return
            chosen = np.full(len(rows), -1, dtype=np.int64)
            for part in chunks(np.arange(len(rows)), batch.vocabulary):
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


def masses(weights: Floats) -> Floats:
    """Sum each row [R, V] in token order, like the reference's `mass`."""
    if weights.shape[1] > _FEW_COLUMNS:
        return np.asarray(np.cumsum(weights, axis=1)[:, -1])
    total = np.zeros(len(weights))
    for column in range(weights.shape[1]):
        total = total + weights[:, column]
    return total


def inverse_cdf(weights: Floats, u: Floats) -> IntArray:
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


def chunks(indices: IntArray, numbers_each: int) -> Iterator[IntArray]:
    """Cut indices into parts whose temporaries, of some numbers each, stay small."""
    step = max(1, _CHUNK_NUMBERS // max(1, numbers_each))
    for start in range(0, len(indices), step):
        yield indices[start : start + step]
