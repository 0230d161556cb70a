"""What comes out of the verification of a batch of trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from draftproof.types import IntArray

__all__ = ["TreeResult"]


class TreeResult(NamedTuple):
    """The accepted path of each row and the tokens that it emits; D is the deepest tree's depth.

    Attributes:
        path: int64 [B, D], the accepted nodes from the root down, padded with -1.
        token_ids: int64 [B, D+1], their tokens and the last one, padded with -1.
        num_emitted: int64 [B], accepted nodes + 1; 0 for a row that could not be decided.
        status: int64 [B] of `RowStatus` bits, 0 where all is well.
        backend: which implementation ran.
    """

    path: IntArray
    token_ids: IntArray
    num_emitted: IntArray
    status: IntArray
    backend: str

    @property
    def num_accepted(self) -> IntArray:
        """Accepted nodes, int64 [B] (0 for a row that could not be decided)."""
        return np.maximum(self.num_emitted - 1, 0)

    def to_lists(self) -> list[list[int]]:
        """Each row's emitted tokens, without padding."""
        pairs = zip(self.token_ids.tolist(), self.num_emitted.tolist(), strict=True)
        return [tokens[:count] for tokens, count in pairs]
