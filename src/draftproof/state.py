"""What a rule hands from one round of a text to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from draftproof.arrays import IntArray, as_integers
from draftproof.errors import complaint
from draftproof.reference.greedy_block import Discount, State

__all__ = ["GreedyBlockState"]


@dataclass(frozen=True, eq=False)
class GreedyBlockState:
    """The state of ``rule="greedy-block"``: hand each round the ``state`` of the one before.

    A round that rejects drafts has emitted too much of some texts. For the positions that those
    drafts would have filled the target becomes norm (P - d Q)+; d moves on with each token. Several
    rounds may have left such a discount on one position.

    Attributes:
        remaining: int64 [B, L], for how many tokens each discount still holds.
        factor: float64 [B, L], its d, the earliest round's first. With a 0 in either it is none.

    Both are read-only. A row needs at least ``num_open`` drafts in its next round.
    """

    remaining: IntArray
    factor: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.remaining.ndim != 2 or self.remaining.shape != self.factor.shape:
            found = f"shape {self.factor.shape} beside remaining's {self.remaining.shape}"
            fix = "pass the arrays of a result's state"
            raise ValueError(complaint("factor", "", found=found, wanted="both [B, L]", fix=fix))
        for array in (self.remaining, self.factor):
            array.flags.writeable = False

    def __len__(self) -> int:
        """B."""
        return len(self.remaining)

    @property
    def num_open(self) -> IntArray:
        """Positions of each row whose target is discounted, int64 [B]."""
        return np.asarray(np.where(self.factor > 0, self.remaining, 0).max(axis=1, initial=0))

    def take(self, rows: npt.ArrayLike) -> GreedyBlockState:
        """Return the state of other rows, for a batch that requests leave and join.

        Args:
            rows: [B'] indices into these rows, each as often as you like; a negative one stands
                for a new text.

        >>> import numpy as np
        >>> state = GreedyBlockState(np.array([[2], [1]]), np.array([[0.5], [0.25]]))
        >>> state.take([1, -1]).num_open.tolist()
        [1, 0]
        """
        indices = as_integers("rows", rows, (), "B")
        if (beyond := np.flatnonzero(indices >= len(self))).size:
            found, wanted = indices[beyond[0]], f"an index below {len(self)}, or a negative one"
            fix = "index the rows of the batch that returned this state"
            raise ValueError(
                complaint("rows", f"entry {beyond[0]}", found=found, wanted=wanted, fix=fix)
            )
        known = (indices >= 0)[:, None]
        if not len(self):
            return GreedyBlockState.of_rows([()] * len(indices))
        return GreedyBlockState.of_discounts(
            np.where(known, self.remaining[indices], 0), self.factor[indices]
        )

    def row(self, row: int) -> State:
        """Return one row's discounts."""
        pairs = zip(self.remaining[row].tolist(), self.factor[row].tolist(), strict=True)
        return tuple(Discount(*pair) for pair in pairs if pair[0] and pair[1] > 0)

    @classmethod
    def of_rows(cls, states: Sequence[State]) -> GreedyBlockState:
        """Gather the discounts of each row."""
        remaining = np.zeros((len(states), max(map(len, states), default=0)), dtype=np.int64)
        factor = np.zeros(remaining.shape)
        for row, state in enumerate(states):
            for place, discount in enumerate(state):
                remaining[row, place], factor[row, place] = discount
        return cls(remaining, factor)

    @classmethod
    def of_discounts(cls, remaining: IntArray, factor: npt.NDArray[np.float64]) -> GreedyBlockState:
        """Move each row's discounts to the front, in order, and cut the columns that none needs."""
        held = (remaining > 0) & (factor > 0)
        order = np.argsort(~held, axis=1, kind="stable")[:, : held.sum(axis=1).max(initial=0)]
        kept = np.take_along_axis(held, order, axis=1)
        remaining = np.where(kept, np.take_along_axis(remaining, order, axis=1), 0)
        return cls(remaining, np.where(kept, np.take_along_axis(factor, order, axis=1), 0))
