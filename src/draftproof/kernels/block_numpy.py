"""Block verification vectorised over the batch, in NumPy.

The arithmetic is `draftproof.reference.block`'s, operation for operation, so the tokens are equal
bit for bit. Rows are read from the last draft down to the one kept, and a row whose drafts are all
kept reads the bonus alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch
from draftproof.kernels.call_numpy import Call, Drafted, chunks, masses
from draftproof.kernels.laws_numpy import dense_draft_rows
from draftproof.noise import uniform
from draftproof.types import IntArray

__all__ = ["keep_block", "residuals", "spread", "uniform", "verify_chain"]

Floats = npt.NDArray[np.float64]
Left = Callable[[IntArray, int], tuple[Floats, Floats]]
"""Of some of a call's rows, at a position: the last token's weights [R, V] and the target's law."""


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
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        call = Call(batch, validate)
        rows = call.match_greedy()
        call.decide(rows, lambda rows: _block(call, accept, final, rows))
    return call.result()


def _block(call: Call, accept: Floats, final: Floats, rows: IntArray) -> None:
    batch = call.batch
    drafted = call.drafted(rows, accept)
    call.judge_drafted(rows, drafted, True, final)
    p, q, u = spread(drafted, len(rows), batch.max_draft)
    w = np.ones((len(rows), batch.max_draft + 1))
    for i in range(batch.max_draft):
        scaled = w[:, i] * p[:, i]
        w[:, i + 1] = np.where(scaled == 0, scaled, np.where(scaled < q[:, i], scaled / q[:, i], 1))

    def left(part: IntArray, position: int) -> tuple[Floats, Floats]:
        at = np.full(len(part), position)
        laws = widen(batch.target_probs[batch.target_index(rows[part], at)])
        drafts = dense_draft_rows(batch, rows[part], at)
        return residuals(w[part, position, None] * laws, drafts), laws

    keep_block(call, rows, w, u, final, left)


def spread(drafted: Drafted, size: int, longest: int) -> tuple[Floats, Floats, Floats]:
    """Lay p, q and u at the drafts out as [R, K], 0 where a row has no draft."""
    p, q, u = np.zeros((3, size, longest))
    for table, numbers in ((p, drafted.p), (q, drafted.q), (u, drafted.u)):
        table[drafted.which, drafted.positions] = numbers
    return p, q, u


def residuals(p: Floats, q: Floats) -> Floats:
    """Return max(0, p - q) of each row."""
    difference = p - q
    return np.where(difference > 0, difference, 0)


def keep_block(call: Call, rows: IntArray, w: Floats, u: Floats, final: Floats, left: Left) -> None:
    """Scan each row's drafts from the last one down, and draw its last token where it stops.

    Args:
        call: the call, in which these rows' drafts have been judged.
        rows: [R].
        w: [R, K+1], the ratio that each test starts from.
        u: [R, K], the uniforms of the tests.
        final: [B], the uniforms of the last tokens.
        left: what a test weighs and the last token is drawn from.
    """
    lengths = call.batch.num_draft[rows]
    scanned = call.status[rows] == 0
    whole = lengths == 0
    drafted = np.flatnonzero(~whole)
    ends = lengths[drafted]
    whole[drafted] = u[drafted, ends - 1] < w[drafted, ends]
    call.draw_bonus(rows[scanned & whole], final)
    scanned &= ~whole
    for position in reversed(range(call.batch.max_draft)):
        reads = scanned & (position < lengths) & (w[:, position] > 0)
        for part in chunks(np.flatnonzero(reads), call.batch.vocabulary):
            well = call.judge_laws(rows[part], np.full(len(part), position), recovered=True)
            scanned[part[~well]] = False
            part = part[well]
            weights, laws = left(part, position)
            z, ratio = masses(weights), w[part, position]
            stops = (ratio >= 1) | (u[part, position - 1] * (z + (1 - ratio)) < z)
            stops |= position == 0
            at = rows[part[stops]]
            call.num_accepted[at] = position
            call.recover(at, weights[stops], laws[stops], final)
            scanned[part[stops]] = False
