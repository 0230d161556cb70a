"""The exact law of a verifier whose uniforms can be replayed: find its thresholds by bisection.

Thresholds cut the cube of uniforms into cells, in each of which the outcome is constant. A cell two
of whose points have different outcomes lacks a threshold between them, which is found to the last
of 53 bits and cuts this cell alone: what decides after a rejection costs nothing elsewhere. At the
end the cells carry the law: the outcome in the middle of each, and its volume.

It is assumed, and to be reported, that the outcome is constant in a cell if its middle, the middles
of its faces and `RANDOM_POINTS` random points in it agree, whatever the cell's size. `CONFIRMING`
random texts are then made, each of which must be what its cell says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, Self

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
    "Steps",
    "bisected_law",
    "impossible_measure",
]

Ints = npt.NDArray[np.int64]

RANDOM_POINTS = 16
"""In each cell."""
CONFIRMING = 700
"""Random texts: a law that is .02 off the one by thresholds passes them once in a million times."""
ASSUMPTION = (
    f"an outcome that {RANDOM_POINTS} random points and all faces of a cell share fills it, "
    f"as {CONFIRMING:,} random texts confirm"
)
ONE = 1 << 53
"""Uniforms are counted in steps of 2^-53, the grid of NumPy's own."""
MOST_CELLS = 32
"""For each chain of drafts, on average."""
MOST_ROUNDS = 32
MOST_BRACKETS = 20_000

Steps = set[int]
"""Thresholds that were found before, in whatever uniform: the first places to look at."""


class _Columns:
    """Arrays of one length, to be cut and joined together."""

    __dataclass_fields__: dict[str, Any]

    def take(self, index: Any) -> Self:
        return type(self)(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    def join(self, other: Self) -> Self:
        names = self.__dataclass_fields__
        return type(self)(
            *(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names)
        )


@dataclass
class _Cells(_Columns):
    """Boxes of uniforms, each of one chain of drafts."""

    chain: Ints
    low: Ints
    """[n, columns]: the lowest step of each uniform."""
    high: Ints
    """[n, columns]: the first step behind it."""
    code: Ints
    """What the middle emits."""
    closed: npt.NDArray[np.bool_]
    """Whether all its points have emitted the same."""

    def __len__(self) -> int:
        return len(self.chain)

    @property
    def middle(self) -> Ints:
        return (self.low + self.high) // 2

    def others(self, rng: np.random.Generator) -> Ints:
        """Return points [n, points, columns] in each cell, to be compared with its middle."""
        middle, columns = self.middle, self.low.shape[1]
        points = [rng.integers(self.low, self.high) for _ in range(RANDOM_POINTS)]
        for column in range(columns):
            for face in (self.low, self.high - 1):
                points.append(middle.copy())
                points[-1][:, column] = face[:, column]
        return np.stack(points, axis=1)

    def split(self, cuts: dict[int, tuple[int, list[int]]]) -> _Cells:
        """Replace each cell by its parts: ``cuts`` holds a column and steps, by cell."""
        whole = np.ones(len(self), dtype=np.bool_)
        whole[list(cuts)] = False
        parts = [self.take(whole)]
        for cell, (column, steps) in cuts.items():
            part = self.take(np.full(len(steps) + 1, cell))
            part.low[1:, column], part.high[:-1, column] = steps, steps
            part.closed[:] = False
            parts.append(part)
        return reduce(_Cells.join, parts)


@dataclass
class _Brackets(_Columns):
    """Pairs of steps along a uniform between which the outcome changes."""

    cell: Ints
    chain: Ints
    column: Ints
    point: Ints
    """[n, columns]: the other uniforms."""
    low: Ints
    high: Ints
    code_low: Ints
    code_high: Ints


def bisected_law(replay: Replay, known: Steps | None = None) -> Enumeration:
    """Return the law of g + 1 tokens, completed from the target.

    Args:
        replay: the subject.
        known: thresholds of earlier runs in this world, which save looking for them; those that
            are found are added to it.

    Returns:
        Its ``boundary`` is the measure of the uniforms that raise or break the contract, however
        large. The law's error counts one step of 2^-53 for each breakpoint, and the rounding that
        `rounding_error` grants; it is 0 if the law equals the target's.

    Raises:
        NotDrivable: the assumption of this module is false.
    """
    cells = _find_cells(replay, set() if known is None else known)
    masses: dict[Text, Fraction] = {}
    boundary, unit = Fraction(0), ONE**replay.columns
    widths = (cells.high - cells.low).tolist()
    for chain, code, sides in zip(cells.chain.tolist(), cells.code.tolist(), widths, strict=True):
        mass = replay.weights[chain] * Fraction(math.prod(sides), unit)
        text = replay.text(code)
        if text is None:
            boundary += mass
        else:
            masses[text] = masses.get(text, Fraction(0)) + mass
    length = replay.num_draft + 1
    law = complete(masses.items(), replay.world, length)
    if law != replay.world.target_law(length):
        steps = _most_thresholds(cells)
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


def _find_cells(replay: Replay, known: Steps) -> _Cells:
    """Cut cells until each is of one outcome.

    ::

        repeat until no two points of a cell differ:
            compare the middle of every new cell with other points of it
            where all cells are done, compare random texts with the cells they lie in
            walk from the middle to each point that differs, one uniform after the other
            bisect along the uniform at which the outcome changes
            cut the cell across the first such uniform
    """
    rng = np.random.default_rng(0)
    n, columns = len(replay.drafts), replay.columns
    low, code = np.zeros((n, columns), dtype=np.int64), np.zeros(n, dtype=np.int64)
    cells = _Cells(np.arange(n), low, low + ONE, code, np.zeros(n, dtype=np.bool_))
    for _ in range(MOST_ROUNDS):
        finished = bool(cells.closed.all())
        pairs = _strays(replay, cells, rng) if finished else _differing(replay, cells, rng)
        found = _bisect(replay, _walk(replay, cells, *pairs), known)
        if finished and not found:
            return cells
        known |= {step for _, _, step in found}
        cuts: dict[int, tuple[int, list[int]]] = {}
        for cell, column, step in sorted(found):
            first, steps = cuts.setdefault(cell, (column, []))
            if column == first:
                steps.append(step)
        cells.closed[:] = True
        cells = cells.split(cuts)
        if len(cells) > MOST_CELLS * n:
            break
    raise NotDrivable("The subject's decisions depend on several uniforms at once.")


def _differing(replay: Replay, cells: _Cells, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Look at the open cells; return points that emit what their cell's middle does not."""
    here = np.flatnonzero(~cells.closed)
    new = cells.take(here)
    points = np.concatenate([new.middle[:, None], new.others(rng)], axis=1)
    of_cell = np.repeat(here, points.shape[1])
    codes = replay.emit(cells.chain[of_cell], points.reshape(len(of_cell), -1) / ONE)
    codes = codes.reshape(points.shape[:2])
    cells.code[here] = codes[:, 0]
    row, number = np.nonzero(codes != codes[:, :1])
    return here[row], points[row, number]


def _strays(replay: Replay, cells: _Cells, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Make random texts; return those that are not what their cell says."""
    weights = np.array([float(weight) for weight in replay.weights])
    chain = rng.choice(len(weights), size=CONFIRMING, p=weights / weights.sum())
    point = rng.integers(0, ONE, (CONFIRMING, replay.columns))
    inside = (cells.low <= point[:, None]) & (point[:, None] < cells.high)
    cell = (inside.all(axis=2) & (cells.chain == chain[:, None])).argmax(axis=1)
    stray = replay.emit(chain, point / ONE) != cells.code[cell]
    return cell[stray], point[stray]


def _walk(replay: Replay, cells: _Cells, cell: Ints, end: Ints) -> _Brackets:
    """Go from a cell's middle to a point, one uniform after the other, to the first change."""
    here, code = cells.middle[cell], cells.code[cell]
    parts = []
    for column in range(replay.columns):
        there = here.copy()
        there[:, column] = end[:, column]
        after = replay.emit(cells.chain[cell], there / ONE)
        up = there[:, column] > here[:, column]
        step = _Brackets(
            cell,
            cells.chain[cell],
            np.full(len(cell), column),
            here,
            np.where(up, here[:, column], there[:, column]),
            np.where(up, there[:, column], here[:, column]),
            np.where(up, code, after),
            np.where(up, after, code),
        )
        parts.append(step.take(code != after))
        same = code == after
        cell, here, end, code = cell[same], there[same], end[same], code[same]
    return _one_of_each(reduce(_Brackets.join, parts))


def _one_of_each(brackets: _Brackets) -> _Brackets:
    """Keep the narrowest of the changes that look alike: most are one threshold, seen often."""
    order = np.argsort(brackets.high - brackets.low, kind="stable")
    b = brackets.take(order)
    kinds = np.stack([b.cell, b.column, b.code_low, b.code_high], axis=1)
    return b.take(np.unique(kinds, axis=0, return_index=True)[1])


def _bisect(replay: Replay, brackets: _Brackets, known: Steps) -> set[tuple[int, int, int]]:
    """Narrow all brackets together, down to one step; a third outcome makes two of one."""
    found: set[tuple[int, int, int]] = set()
    edges = np.array(sorted({edge for step in known for edge in (step - 1, step)}), dtype=np.int64)
    while len(brackets.cell):
        if len(brackets.cell) > MOST_BRACKETS:
            raise NotDrivable("The subject's outcomes change without end.")
        middle = _between(brackets, edges)
        point = brackets.point.copy()
        point[np.arange(len(point)), brackets.column] = middle
        codes = replay.emit(brackets.chain, point / ONE)
        left, right = brackets.take(slice(None)), brackets.take(slice(None))
        left.high, left.code_high = middle, codes
        right.low, right.code_low = middle, codes
        brackets = left.take(codes != left.code_low).join(right.take(codes != right.code_high))
        done = brackets.high - brackets.low == 1
        found.update(_places(brackets.take(done)))
        brackets = brackets.take(~done)
    return found


def _between(brackets: _Brackets, edges: Ints) -> Ints:
    """A step within each bracket: the middle one of the known edges there, else the middle."""
    middle = (brackets.low + brackets.high) // 2
    first = np.searchsorted(edges, brackets.low, side="right")
    last = np.searchsorted(edges, brackets.high, side="left")
    inside = first < last
    middle[inside] = edges[(first + last)[inside] // 2]
    return middle


def _places(brackets: _Brackets) -> Iterator[tuple[int, int, int]]:
    return zip(
        brackets.cell.tolist(), brackets.column.tolist(), brackets.high.tolist(), strict=True
    )


def _most_thresholds(cells: _Cells) -> int:
    """The thresholds of a chain of drafts, in all its uniforms: the largest number of them."""
    edges: dict[int, set[tuple[int, int]]] = {}
    for chain, low in zip(cells.chain.tolist(), cells.low.tolist(), strict=True):
        edges.setdefault(chain, set()).update((i, step) for i, step in enumerate(low) if step)
    return max(map(len, edges.values()))
