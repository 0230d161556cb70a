"""Do the place in the batch, the padding, or the other rows change what a row emits?

Every row gets the same uniforms wherever it stands (`RowNoise`), and its output is compared bit
for bit. Equal output settles the question for the rows that were tried. Different output does not
settle it the other way: a right verifier may consume its uniforms in an order that depends on the
batch. Then the laws decide, in the checks ``ragged`` and ``rows``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.exact.generator import DrivenGenerator, NotDrivable, Shape
from draftproof.proof.sampled.sampling import Experiment, Padding, streams
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.worlds.catalogue import WORLDS

__all__ = ["RowNoise", "check_invariance"]

Array = npt.NDArray[Any]
Batch = tuple[Array, Array, Array, Array]
"""Draft, q, p, num_draft."""

ROWS = 97
"""Odd, and no other size: the axis of the rows is told by its length."""
ALONE = 12
MOST_UNIFORMS = 4_096


class RowNoise(DrivenGenerator):
    """Gives a row the same uniforms in any batch.

    Args:
        seed: of all uniforms.
        rows: which rows stand in the batch, in order.
    """

    def __init__(self, seed: int, rows: Array) -> None:
        super().__init__()
        self._seed, self._rows, self._draws = seed, rows, 0

    def draw(self, shape: Shape) -> Array:
        """Fill the axis of the rows with each one's own uniforms, from column 0 on."""
        B = len(self._rows)
        axes = [axis for axis, length in enumerate(shape) if length == B]
        if not axes or (len(axes) > 1 and B > 1):
            raise self.refuse(f"uniforms of shape {shape} for {B} rows")
        rest = shape[: axes[0]] + shape[axes[0] + 1 :]
        width = int(np.prod(rest))
        if width > MOST_UNIFORMS:
            raise self.refuse(f"{width} uniforms for each row")
        self._draws += 1
        columns = [
            np.random.default_rng([self._seed, self._draws, column]).random(ROWS)[self._rows]
            for column in range(width)
        ]
        uniforms = np.array(columns).reshape(*rest, B)
        return np.ascontiguousarray(np.moveaxis(uniforms, -1, axes[0]))

    def narrow(self, uniforms: Array) -> Array:
        """Cut to 24 bits, as NumPy's uniforms of that type have."""
        return np.asarray(np.floor(uniforms * 2**24) / 2**24, dtype=np.float32)


def check_invariance(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """A row's output under other orders, paddings, batch sizes and neighbours."""
    rng, _ = streams(plan.seed, "invariance")
    num_draft = rng.integers(0, 4, ROWS)
    experiment = Experiment((WORLDS["L4"], WORLDS["L357"]))
    draft_seed = int(rng.integers(1 << 32))

    def batch(like: Experiment, lengths: Array = num_draft, seed: int = draft_seed) -> Batch:
        return (*like.batch(lengths, np.random.default_rng(seed)), lengths)

    home = batch(experiment)
    everyone = np.arange(ROWS)
    order = rng.permutation(ROWS)
    padded = {
        padding.value: batch(replace(experiment, extra=2, padding=padding)) for padding in Padding
    }
    strangers = batch(experiment, rng.integers(0, 4, ROWS), draft_seed + 1)
    odd = everyone % 4 >= 2  # half of the rows of each world
    mixed = tuple(
        np.where(odd.reshape(-1, *[1] * (a.ndim - 1)), b, a)
        for a, b in zip(home, strangers, strict=True)
    )

    questions: list[tuple[str, list[tuple[Any, Array]]]] = [
        ("the order of the rows", [(_rows(home, order), order)]),
        ("two columns of padding", [(b, everyone) for b in padded.values()]),
        ("the other rows of the batch", [(mixed, everyone)]),
        ("the size of the batch", [(_rows(home, [row]), everyone[[row]]) for row in range(ALONE)]),
    ]
    for what, trials in questions:
        skip = odd if what.startswith("the other") else np.zeros(ROWS, dtype=np.bool_)
        yield _answer(subject, plan, what, home, trials, skip)


def _answer(
    subject: Subject,
    plan: Plan,
    what: str,
    home: Batch,
    trials: list[tuple[Any, Array]],
    skip: Array,
) -> Finding:
    def finding(outcome: Outcome, message: str, size: int = 0) -> Finding:
        return Finding("invariance", outcome, Grade.BEHAVIOUR, f"{what}: {message}", size=size)

    compared = 0
    try:
        expected = _texts(subject, plan, home, np.arange(ROWS))
        for batch, rows in trials:
            for row, text in zip(rows, _texts(subject, plan, batch, rows), strict=True):
                if not skip[row]:
                    compared += 1
                    if text != expected[row]:
                        reason = "a row's output under the same uniforms depends on it"
                        return finding(Outcome.NOT_DRIVABLE, f"{reason}; the laws have to decide")
    except NotDrivable as refused:
        return finding(Outcome.NOT_DRIVABLE, f"{refused} The laws have to decide.")
    return finding(Outcome.PASSED, f"changes no output, in {compared} rows", compared)


def _texts(subject: Subject, plan: Plan, batch: Batch, rows: Array) -> list[list[int]]:
    """What each row emits, under its own uniforms."""
    noise = RowNoise(plan.seed, rows)
    try:
        token_ids, num_emitted = subject.verify(*batch, noise)
    except NotDrivable:
        raise
    except Exception as error:
        raise NotDrivable(f"{type(error).__name__} under replayed uniforms.") from error
    if noise.refusal is not None:
        raise NotDrivable(f"The subject asks for {noise.refusal}.")
    return [ids[:n].tolist() for ids, n in zip(token_ids, num_emitted, strict=True)]


def _rows(batch: Batch, rows: Any) -> Batch:
    draft, q, p, num_draft = (array[rows] for array in batch)
    return draft, q, p, num_draft
