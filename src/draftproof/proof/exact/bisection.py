"""The exact law of a verifier whose uniforms can be replayed: find its thresholds by bisection.

The thresholds of all uniforms cut the cube of uniforms into cells, in each of which the outcome is
constant. Whenever two points of one cell have different outcomes, a threshold is missing between
them, and is found to the last of 53 bits. At the end the cells carry the law: the outcome in the
middle of each, and its volume.

It is assumed, and to be reported, that the outcome is constant in a cell if its middle, the middles
of its faces and `RANDOM_POINTS` random points in it agree, whatever the cell's size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.exact.exact_law import Enumeration, rounding_error
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.replay import Replay
from draftproof.proof.worlds.law import Text, complete
from draftproof.proof.worlds.world import World

__all__ = [
    "ASSUMPTION",
    "ONE",
    "Thresholds",
    "bisected_law",
    "find_thresholds",
    "impossible_measure",
]

Ints = npt.NDArray[np.int64]

RANDOM_POINTS = 16
"""In each cell and each round; a round that finds nothing new ends the search."""
ASSUMPTION = f"an outcome that {RANDOM_POINTS} random points and all faces of a cell share fills it"
ONE = 1 << 53
"""Uniforms are counted in steps of 2^-53, the grid of NumPy's own."""
MOST_CELLS = 2_048
"""Of one chain of drafts."""
MOST_ROUNDS = 16
MOST_BRACKETS = 20_000

_LOW, _HIGH = slice(None, -1), slice(1, None)
Thresholds = list[list[list[int]]]
"""By chain of drafts and by uniform: the first step of each new outcome, in order."""


def find_thresholds(replay: Replay) -> Thresholds:
    """Find all thresholds, in steps of 2^-53.

    ::

        repeat until no two points of a cell differ:
            compare the middle of every cell with other points of it
            walk from the middle to each point that differs, one uniform after the other
            bisect along the uniform at which the outcome changes

    Raises:
        NotDrivable: there is no end to it: decisions depend on several uniforms at once.
    """
    rng = np.random.default_rng(0)
    thresholds: Thresholds = [[[] for _ in range(replay.columns)] for _ in replay.drafts]
    for _ in range(MOST_ROUNDS):
        found = _bisect(replay, _changes(replay, thresholds, rng))
        if not found:
            return thresholds
        for chain, column, step in found:
            thresholds[chain][column] = sorted({*thresholds[chain][column], step})
    raise NotDrivable("The subject's decisions depend on several uniforms at once.")


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
    masses: dict[Text, Fraction] = {}
    boundary, unit = Fraction(0), ONE**replay.columns
    for chain, weight in enumerate(replay.weights):
        low, high = _cells(thresholds[chain])
        codes = replay.emit(np.full(len(low), chain), (low + high) // 2 / ONE)
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
    `proof.exact.exact_law.BOUNDARY` a verifier is to be rejected. Below it lies the edge of the
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


def _changes(replay: Replay, thresholds: Thresholds, rng: np.random.Generator) -> _Brackets:
    """Find points of one cell with different outcomes, and the uniform that makes the change."""
    chains, middles, points = [], [], []
    for number, columns in enumerate(thresholds):
        low, high = _cells(columns)
        middle = (low + high) // 2
        others = [rng.integers(low, high) for _ in range(RANDOM_POINTS)]
        for column in range(replay.columns):
            for face in (low, high - 1):
                others.append(middle.copy())
                others[-1][:, column] = face[:, column]
        points += others
        middles += [middle] * len(others)
        chains += [np.full(len(middle), number)] * len(others)
    chain, middle, point = map(np.concatenate, (chains, middles, points))
    differ = replay.emit(chain, middle / ONE) != replay.emit(chain, point / ONE)
    return _walk(replay, chain[differ], middle[differ], point[differ])


def _walk(replay: Replay, chain: Ints, start: Ints, end: Ints) -> _Brackets:
    """Go from start to end one uniform after the other, up to the first change of outcome."""
    here = start.copy()
    code = replay.emit(chain, here / ONE)
    parts = [_Brackets(chain[:0], chain[:0], start[:0], *[chain[:0]] * 4)]
    for column in range(replay.columns):
        there = here.copy()
        there[:, column] = end[:, column]
        after = replay.emit(chain, there / ONE)
        up = there[:, column] > here[:, column]
        step = _Brackets(
            chain,
            np.full(len(chain), column),
            here,
            np.where(up, here[:, column], there[:, column]),
            np.where(up, there[:, column], here[:, column]),
            np.where(up, code, after),
            np.where(up, after, code),
        )
        parts.append(step.take(code != after))
        same = code == after
        chain, here, end, code = chain[same], there[same], end[same], code[same]
    return _one_of_each(reduce(_Brackets.join, parts))


def _one_of_each(brackets: _Brackets) -> _Brackets:
    """Keep the narrowest of the changes that look alike: most are one threshold, seen often."""
    order = np.argsort(brackets.high - brackets.low, kind="stable")
    b = brackets.take(order)
    kinds = np.stack([b.chain, b.column, b.code_low, b.code_high], axis=1)
    return b.take(np.unique(kinds, axis=0, return_index=True)[1])


def _bisect(replay: Replay, brackets: _Brackets) -> set[tuple[int, int, int]]:
    """Halve all brackets together, down to one step; a third outcome makes two of one."""
    found: set[tuple[int, int, int]] = set()
    while len(brackets.low):
        if len(brackets.low) > MOST_BRACKETS:
            raise NotDrivable("The subject's outcomes change without end.")
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


def _cells(columns: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return the lowest step in each cell and the first step behind it, both [cells, columns]."""
    edges = [[0, *steps, ONE] for steps in columns]
    if math.prod(len(steps) - 1 for steps in edges) > MOST_CELLS:
        raise NotDrivable(f"The subject has more than {MOST_CELLS} cells of uniforms.")
    corners = (itertools.product(*(steps[cut] for steps in edges)) for cut in (_LOW, _HIGH))
    low, high = (np.array(list(c), dtype=np.int64).reshape(-1, len(edges)) for c in corners)
    return low, high
