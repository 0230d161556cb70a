"""A world: a target and a drafter whose laws are known exactly, and depend on the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.errors import complaint
from draftproof.proof.worlds.law import Law, Text, complete

__all__ = ["Row", "World"]

Row = tuple[Fraction, ...]


@dataclass(frozen=True)
class World:
    """A Markov chain for the target and one for the drafter: row s is the law after token s.

    Attributes:
        target: V rows of V probabilities.
        draft: the drafter's rows, of the same shape.
        start: the row that governs the first token.
        name: what reports call it.
        why: one line on what it shows.
    """

    target: tuple[Row, ...]
    draft: tuple[Row, ...]
    start: int = 0
    name: str = ""
    why: str = ""

    @classmethod
    def chain(
        cls,
        target_rows: Sequence[Sequence[Any]],
        draft_rows: Sequence[Sequence[Any]],
        start: int = 0,
        name: str = "",
        why: str = "",
    ) -> World:
        """Build a world from rows of numbers.

        Args:
            target_rows: V rows of V numbers >= 0. A row of integers over a common denominator, or
                of floats (taken as the numbers they are), is divided by its exact sum; a row that
                holds a Fraction must sum to 1.
            draft_rows: of the same shape.
            start: the state that texts start in.
            name, why: see the class.

        Raises:
            ValueError: rows of different lengths, negative numbers, or a wrong sum.

        >>> toy = World.chain([(1, 2), (1, 2)], [(2, 1), (2, 1)])
        >>> toy.target[0]
        (Fraction(1, 3), Fraction(2, 3))
        """
        V = len(target_rows)
        target = tuple(_law("target_rows", s, row, V) for s, row in enumerate(target_rows))
        draft = tuple(_law("draft_rows", s, row, V) for s, row in enumerate(draft_rows))
        if len(draft) != V or not 0 <= start < V:
            raise ValueError(
                complaint(
                    "draft_rows, start",
                    "",
                    found=f"{len(draft)} rows and start {start}",
                    wanted=f"{V} rows, as many as target_rows has, and a start among them",
                    fix="give both chains one row for each token",
                )
            )
        return cls(target, draft, start, name, why)

    @property
    def vocabulary(self) -> int:
        """V, the number of tokens."""
        return len(self.target)

    @property
    def tables(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The rows of the target and of the drafter, [V, V] each, rounded to float64."""
        target, draft = self._floats
        return target[:-1], draft[:-1]

    def row(self, context: Sequence[int]) -> int:
        """Which row of either chain governs the token after this context (all tokens so far)."""
        return context[-1] if len(context) else self.start

    def target_law(self, length: int) -> Law:
        """The joint law of the target's first tokens: what every lossless rule has to give."""
        return complete([((), Fraction(1))], self, length)

    def draft_paths(
        self, num_draft: int, draft: Sequence[Row] | None = None
    ) -> Iterator[tuple[Text, Fraction]]:
        """Yield every chain of drafts of positive probability, with its probability, in order.

        Args:
            num_draft: g.
            draft: the rows that drafts are drawn from, if not the world's.
        """
        rows = self.draft if draft is None else draft
        paths: list[tuple[Text, Fraction]] = [((), Fraction(1))]
        for _ in range(num_draft):
            paths = [
                ((*path, token), weight * q)
                for path, weight in paths
                for token, q in enumerate(rows[self.row(path)])
                if q
            ]
        yield from paths

    def rows(
        self, drafts: Sequence[int], context: Sequence[int] = ()
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return (q [g, V], p [g+1, V]) along drafts behind a context, as arrays of Fractions."""
        states = [self.row(context), *drafts]
        return self._fractions[1][states[:-1]], self._fractions[0][states]

    def arrays(
        self, drafts: Sequence[int], max_draft: int | None = None, context: Sequence[int] = ()
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return (q [K, V], p [K+1, V]) along a chain of drafts, in float64.

        Args:
            drafts: g tokens.
            max_draft: K, g if it is left out; rows that a verifier must not read are NaN.
            context: the text that the drafts follow.
        """
        g = len(drafts)
        padding = [self.vocabulary] * ((g if max_draft is None else max_draft) - g)
        states = [self.row(context), *drafts]
        target, draft = self._floats
        return draft[states[:g] + padding], target[states + padding]

    @cached_property
    def _fractions(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        shape = (self.vocabulary, self.vocabulary)
        chains = []
        for rows in (self.target, self.draft):
            array = np.empty(shape, dtype=object)
            array[:] = rows
            chains.append(array)
        return chains[0], chains[1]

    @cached_property
    def _floats(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The chains rounded to float64, with a last row of NaN for padding."""
        nan = np.full((1, self.vocabulary), np.nan)
        target, draft = (np.vstack([a.astype(np.float64), nan]) for a in self._fractions)
        return target, draft


def _law(argument: str, state: int, numbers: Sequence[Any], V: int) -> Row:
    row = tuple(Fraction(x) for x in numbers)
    total = sum(row, Fraction(0))
    scaled = not any(isinstance(x, Fraction) for x in numbers)
    if len(row) != V or min(row) < 0 or total == 0 or (total != 1 and not scaled):
        raise ValueError(
            complaint(
                argument,
                f"row {state}",
                found=f"{len(row)} numbers from {min(row, default=0)}, of sum {total}",
                wanted=f"{V} numbers >= 0, of sum 1 if they are Fractions",
                fix="give one row for each token, and in it one number for each token",
            )
        )
    return tuple(x / total for x in row)
