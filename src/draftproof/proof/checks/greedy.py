"""The contract ``greedy``: every row equals plain greedy decoding, token for token.

At temperature 0 nothing is drawn, so there is nothing to estimate: one wrong row is a proof. The
subject is ``f(draft, p, num_draft)``, or takes the draft law and a generator too, as a ragged
verifier does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.reference.chain import greedy

__all__ = ["check_greedy", "plain_greedy"]

Array = npt.NDArray[Any]
LEVELS = 4
"""Different numbers in a random row: few, so that ties for the largest are common."""


@dataclass(frozen=True)
class _Batch:
    """Rows to decode; what lies past a row's drafts is not read."""

    name: str
    draft: Array
    p: Array
    num_draft: Array


def check_greedy(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Compare with plain greedy decoding: ties, ragged and padded rows, no drafts, no rows.

    Yields:
        One finding for each kind of batch. A row that emits other tokens is lossy. One that stops
        early, after right tokens, is not: it needs more calls, and a note says so. So does one on
        NaN, which is no probability: `draftproof.verify_greedy` never lets it win.
    """
    for batch in _batches(plan):
        yield _compare(subject, batch)
    yield _look_at_nan(subject)


def plain_greedy(draft: Array, p: Array, num_draft: Array) -> list[list[int]]:
    """Decode each row by argmax, the lowest id of equal ones, as far as its drafts allow."""
    texts = []
    for x, rows, g in zip(draft.tolist(), p, num_draft.tolist(), strict=True):
        num_accepted, last_token, _ = greedy(x[:g], list(rows[: g + 1]))
        assert last_token is not None, "the rows of the battery have a largest entry"
        texts.append([*x[:num_accepted], last_token])
    return texts


def _batches(plan: Plan) -> Iterator[_Batch]:
    rng = np.random.default_rng([plan.seed, 0x67726565])
    yield _ties()
    yield _random("one row of one draft", rng, 1, 1, 3)
    ragged = _random("ragged rows with many ties", rng, 400, 5, 6)
    yield ragged
    yield _poison(ragged)
    yield _random("no drafts, K = 0", rng, 5, 0, 4)
    yield _random("an empty batch", rng, 0, 3, 4)
    large = _random("a large vocabulary, float32", rng, 4, 3, 50_257)
    yield _Batch(large.name, large.draft, large.p.astype(np.float32), large.num_draft)


def _ties() -> _Batch:
    """Two entries tie for the largest; drafting the lower id is right, the higher one is not."""
    p = np.array([[0.25, 0.375, 0.375], [0.5, 0.0, 0.5], [0.25, 0.25, 0.5]])
    draft = np.array([[1, 0], [2, 0], [1, 2], [0, 0]])
    return _Batch("ties go to the lowest id", draft, np.tile(p, (4, 1, 1)), np.full(4, 2))


def _random(name: str, rng: np.random.Generator, B: int, K: int, V: int) -> _Batch:
    """Rows of few different numbers; three drafts in four are the argmax."""
    p = rng.integers(1, LEVELS + 1, (B, K + 1, V)).astype(np.float64)
    p /= p.sum(axis=-1, keepdims=True)
    draft = np.where(
        rng.random((B, K)) < 0.75, p[:, :K].argmax(axis=-1), rng.integers(0, V, (B, K))
    )
    num_draft = rng.integers(0, K + 1, B)
    if B:
        num_draft[0] = K
    return _Batch(name, draft, p, num_draft)


def _poison(batch: _Batch) -> _Batch:
    """The same rows with token -1 and NaN wherever nothing may be read."""
    K = batch.draft.shape[1]
    draft = np.where(np.arange(K) < batch.num_draft[:, None], batch.draft, -1)
    read = np.arange(K + 1) <= batch.num_draft[:, None]
    p = np.where(read[:, :, None], batch.p, np.nan)
    return _Batch("ragged rows, padded with -1 and NaN", draft, p, batch.num_draft)


def _compare(subject: Subject, batch: _Batch) -> Finding:
    wanted = plain_greedy(batch.draft, batch.p, batch.num_draft)
    out, n_out = _call(subject, batch)
    short = 0
    for b, (text, n) in enumerate(zip(wanted, n_out.tolist(), strict=True)):
        emitted = out[b, :n].tolist()
        if emitted != text[:n]:
            message = f"{batch.name}: row {b} emits {emitted}; plain greedy decoding is {text}"
            return _finding(Outcome.LOSSY, message, batch, b)
        short += n < len(text)
    size = len(wanted)
    if short:
        message = f"{batch.name}: right, but of {size} rows {short} stop before they must"
        return _finding(Outcome.NOTE, message, batch)
    message = f"{batch.name}: equal to plain greedy decoding (rows: {size})"
    return _finding(Outcome.PASSED, message, batch)


def _look_at_nan(subject: Subject) -> Finding:
    """Say which token wins against NaN, where both `numpy.argmax` and common sense have a case."""
    p = np.array([[[0.25, np.nan, 0.75]]])
    batch = _Batch("NaN in a row", np.zeros((1, 0), np.int64), p, np.zeros(1, np.int64))
    try:
        out, _ = _call(subject, batch)
        seen = f"it emits token {out[0, 0]}"
    except Exception as error:
        seen = f"it raises {type(error).__name__}"
    message = f"NaN in a row, which no contract covers: of (.25, NaN, .75) {seen}; ours emits 2"
    return _finding(Outcome.NOTE, message, batch)


def _call(subject: Subject, batch: _Batch) -> tuple[Array, Array]:
    (B, K), V = batch.draft.shape, batch.p.shape[-1]
    q = np.full((B, K, V), 1 / V)
    return subject.verify(batch.draft, q, batch.p, batch.num_draft, np.random.default_rng(0))


def _finding(outcome: Outcome, message: str, batch: _Batch, row: int | None = None) -> Finding:
    case = {}
    if row is not None and batch.p[row].size <= 4_096:
        case = {
            "draft": batch.draft[row : row + 1].tolist(),
            "p": batch.p[row : row + 1].tolist(),
            "num_draft": batch.num_draft[row : row + 1].tolist(),
        }
    K = batch.draft.shape[1]
    return Finding(
        "greedy", outcome, Grade.EXACT, message, max_draft=K, size=len(batch.draft), case=case
    )
