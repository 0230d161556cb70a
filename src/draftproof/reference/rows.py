"""One row of a batch as the dense float64 laws that the rules are written in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch

__all__ = ["draft_row", "drafted_entry", "target_rows"]

Row = npt.NDArray[np.float64]


def target_rows(batch: Batch, row: int) -> list[Row]:
    """Return the row's g + 1 target laws, each float64 [V]."""
    positions = range(int(batch.num_draft[row]) + 1)
    return [widen(batch.target_probs[batch.target_index(row, i)]) for i in positions]


def draft_row(batch: Batch, row: int, position: int) -> Row:
    """Return the draft law at a position, float64 [V]: a token that it does not list has q = 0."""
    at = batch.draft_index(row, position)
    dense = np.zeros(batch.vocabulary)
    if batch.draft_probs is None:
        dense[batch.draft_token_ids[at]] = 1
        return dense
    stored = widen(batch.draft_probs[at])
    if batch.sparse_ids is not None:
        ids = batch.sparse_ids[at]
        listed = (ids >= 0) & (ids < batch.vocabulary)
        with np.errstate(invalid="ignore"):
            np.add.at(dense, ids[listed], stored[listed])
    elif batch.draft_to_target is not None:
        dense[batch.draft_to_target] = stored
    else:
        dense[: len(stored)] = stored
    return dense


def drafted_entry(batch: Batch, row: int, position: int) -> float:
    """Return q(x) at the drafted token."""
    token = batch.draft_token_ids[batch.draft_index(row, position)]
    return float(draft_row(batch, row, position)[token])
