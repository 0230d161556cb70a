"""The exact law of a verifier whose uniforms can be replayed: find every threshold by bisection.

Along each uniform, with the others held fixed, what is emitted is constant between breakpoints.
Each breakpoint is found to the last of 53 bits. Their product cells then carry the law, by a point
for each cell and by its width.

It is assumed, and reported, that each uniform has its own breakpoints whatever the others are (the
cells are checked at second points inside) and that nothing returns within a sixteenth of [0, 1)
to what was emitted before (which holds for decisions that are monotone in each uniform).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.exact import Enumeration, rounding_error
from draftproof.proof.generator import NotDrivable
from draftproof.proof.law import Text, complete
from draftproof.proof.replay import Replay
from draftproof.proof.world import World

__all__ = [
    "ASSUMPTION",
    "ONE",
    "Thresholds",
    "bisected_law",
    "find_thresholds",
    "impossible_measure",
]

Ints = npt.NDArray[np.int64]

ASSUMPTION = "decisions are monotone in each uniform, with thresholds that no other uniform moves"
ONE = 1 << 53
"""Uniforms are counted in steps of 2^-53, the grid of NumPy's own."""
GRID = 16
"""Probes along each uniform beside its ends and its known breakpoints."""
MOST_CELLS = 4_096
"""Product cells of one chain of drafts."""
MOST_ROUNDS = 8

Thresholds = list[list[list[int]]]
"""By chain of drafts and by uniform: the first step of each new outcome, in order."""


def find_thresholds(replay: Replay) -> Thresholds:
    """Find all breakpoints, in steps of 2^-53.

    ::

        repeat until no breakpoint is new:
            for every uniform, and every product cell of the others:
                probe along the uniform, and bisect between neighbours that differ

    Raises:
        NotDrivable: the breakpoints do not come to an end: the assumption is false.
    """
    thresholds: Thresholds = [[[] for _ in range(replay.columns)] for _ in replay.drafts]
    for _ in range(MOST_ROUNDS):
        brackets = _differing_neighbours(replay, thresholds)
        found = _bisect(replay, brackets)
        if not found:
            return thresholds
        for chain, column, step in found:
            thresholds[chain][column].append(step)
            thresholds[chain][column].sort()
    raise NotDrivable("The subject's thresholds depend on its other uniforms.")


def bisected_law(replay: Replay) -> Enumeration:
    """Return the law of g + 1 tokens, completed from the target.

    Returns:
        Its ``boundary`` is the measure of the uniforms that raise or break the contract, however
        large. The law's error counts one step of 2^-53 for each breakpoint, and the rounding that
        `rounding_error` grants; it is 0 if the law equals the target's.

    Raises:
        NotDrivable: the assumption of this module is false.
    """
    thresholds = find_thresholds(replay)
    inner = np.random.default_rng(0)
    masses: dict[Text, Fraction] = {}
    boundary, unit = Fraction(0), ONE**replay.columns
    for chain, weight in enumerate(replay.weights):
        cells = [_cells(steps) for steps in thresholds[chain]]
        low, high = (_product([[c[i] for c in column] for column in cells]) for i in (0, 1))
        codes = _emit(replay, chain, (low + high) // 2)
        if (codes != _emit(replay, chain, inner.integers(low, high))).any():
            raise NotDrivable("The subject's thresholds depend on its other uniforms.")
        for code, widths in zip(codes.tolist(), (high - low).tolist(), strict=True):
            mass = weight * Fraction(math.prod(widths), unit)
            text = replay.text(code)
            if text is None:
                boundary += mass
            else:
                masses[text] = masses.get(text, Fraction(0)) + mass
    length = replay.num_draft + 1
    law = complete(masses.items(), replay.world, length)
    if law != replay.world.target_law(length):
        steps = max(sum(map(len, columns)) for columns in thresholds)
        law = law.with_error(rounding_error(replay.world, length) + steps / ONE)
    emitted = sum((len(text) * mass for text, mass in masses.items()), Fraction(0))
    return Enumeration(law, emitted, replay.calls, boundary)


def impossible_measure(run: Enumeration, world: World) -> Fraction:
    """Return the probability of what cannot be.

    That is a text of probability zero, a token out of range, or an exception. At or above
    `draftproof.proof.exact.BOUNDARY` a verifier is to be rejected. Below it lies the edge of the
    grid, where a right verifier's rounding may put a few uniforms of 2^53.
    """
    possible = world.target_law(run.law.length)
    impossible = [mass for text, mass in run.law.items() if text not in possible]
    return run.boundary + sum(impossible, Fraction(0))


@dataclass
class _Brackets:
    """Pairs of steps along a uniform between which the outcome changes."""

    chain: Ints
    column: Ints
    point: Ints
    """[n, columns]: the other uniforms."""
    low: Ints
    high: Ints
    code_low: Ints
    code_high: Ints

    def take(self, index: Any) -> _Brackets:
        return _Brackets(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    def join(self, other: _Brackets) -> _Brackets:
        names = self.__dataclass_fields__
        return _Brackets(
            *(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names)
        )


def _differing_neighbours(replay: Replay, thresholds: Thresholds) -> _Brackets:
    """Probe every uniform in every cell of the others, and keep one of each kind of change."""
    lanes = []
    for number, columns in enumerate(thresholds):
        middles = [[(low + high) // 2 for low, high in _cells(steps)] for steps in columns]
        for axis, steps in enumerate(columns):
            grid = [ONE * i // GRID + ONE // (2 * GRID) for i in range(GRID)]
            probes = sorted({0, ONE - 1, *grid, *steps, *(step - 1 for step in steps)})
            others = _product([*middles[:axis], [0], *middles[axis + 1 :]])
            points = np.repeat(others, len(probes), axis=0)
            points[:, axis] = np.tile(probes, len(others))
            ends = np.arange(len(points)) % len(probes) == len(probes) - 1
            lanes.append((np.full(len(points), number), np.full(len(points), axis), points, ends))
    if not lanes or not replay.columns:
        empty = np.empty(0, np.int64)
        return _Brackets(empty, empty, empty.reshape(0, 0), empty, empty, empty, empty)
    chain, column, point, end = (np.concatenate(part) for part in zip(*lanes, strict=True))
    codes = replay.emit(chain, point / ONE)
    step = point[np.arange(len(point)), column]
    at = np.flatnonzero(~end[:-1] & (codes[:-1] != codes[1:]) & (step[1:] - step[:-1] > 1))
    kinds = np.stack([chain[at], column[at], step[at], codes[at], codes[at + 1]], axis=1)
    at = at[np.unique(kinds, axis=0, return_index=True)[1]]
    return _Brackets(
        chain[at], column[at], point[at], step[at], step[at + 1], codes[at], codes[at + 1]
    )


def _bisect(replay: Replay, brackets: _Brackets) -> set[tuple[int, int, int]]:
    """Halve all brackets together, down to one step; a third outcome makes two of one."""
    found: set[tuple[int, int, int]] = set()
    while len(brackets.low):
        middle = (brackets.low + brackets.high) // 2
        point = brackets.point.copy()
        point[np.arange(len(point)), brackets.column] = middle
        codes = replay.emit(brackets.chain, point / ONE)
        left, right = brackets.take(slice(None)), brackets.take(slice(None))
        left.high, left.code_high = middle, codes
        right.low, right.code_low = middle, codes
        brackets = left.take(codes != left.code_low).join(right.take(codes != right.code_high))
        done = brackets.high - brackets.low == 1
        ready = brackets.take(done)
        found |= set(
            zip(ready.chain.tolist(), ready.column.tolist(), ready.high.tolist(), strict=True)
        )
        brackets = brackets.take(~done)
    return found


def _emit(replay: Replay, chain: int, points: Ints) -> Ints:
    return replay.emit(np.full(len(points), chain), points / ONE)


def _cells(steps: Sequence[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise([0, *steps, ONE]))


def _product(columns: Sequence[Sequence[int]]) -> Ints:
    """All combinations of one entry of each column, [n, columns]."""
    if math.prod(map(len, columns)) > MOST_CELLS:
        raise NotDrivable(f"The subject has more than {MOST_CELLS} cells.")
    points = list(itertools.product(*columns))
    return np.array(points, dtype=np.int64).reshape(len(points), len(columns))
