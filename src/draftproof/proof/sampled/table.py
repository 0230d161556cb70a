"""A table of counts, beside the law that they should have come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.verdicts.finding import Cell

__all__ = ["Table"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Table:
    """How often each text was made, and how often it should be.

    Attributes:
        world: whose law it is.
        what: the kind of text, for a message.
        counts: by cell; the cells number the texts in lexicographic order.
        law: each cell's probability, summing to 1.
        shape: the vocabulary, for each position of a text.
    """

    world: str
    what: str
    counts: Array
    law: Array
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many texts were counted."""
        return int(self.counts.sum())

    @property
    def residuals(self) -> Array:
        """The signed differences of frequencies and law, of all cells."""
        return np.asarray(self.counts / max(1, self.size) - self.law)

    def worst(self, number: int) -> tuple[Cell, ...]:
        """The cells of the largest differences, largest first."""
        order = np.argsort(-np.abs(self.residuals), kind="stable")[:number]
        return tuple(self._cell(int(cell)) for cell in order)

    def _cell(self, cell: int) -> Cell:
        tokens = tuple(int(token) for token in np.unravel_index(cell, self.shape))
        return Cell(tokens, float(self.law[cell]), float(self.counts[cell] / max(1, self.size)))
