"""Draft laws of many rows at once: dense rows, and the entries at the drafted tokens."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch
from draftproof.types import IntArray

__all__ = ["dense_draft_rows", "drafted_entries"]

Floats = npt.NDArray[np.float64]


def dense_draft_rows(batch: Batch, rows: IntArray, positions: IntArray) -> Floats:
    """Return the draft law at each (row, position), float64 [R, V]; unlisted tokens have q = 0."""
    at = batch.draft_index(rows, positions)
    if batch.draft_probs is None:
        dense = np.zeros((len(rows), batch.vocabulary))
        dense[np.arange(len(rows)), batch.draft_token_ids[at]] = 1
        return dense
    stored = widen(batch.draft_probs[at])
    if batch.sparse_ids is None and batch.draft_to_target is None:
        missing = batch.vocabulary - stored.shape[1]
        return np.pad(stored, ((0, 0), (0, missing))) if missing else stored
    dense = np.zeros((len(rows), batch.vocabulary))
    if batch.sparse_ids is None:
        dense[:, batch.draft_to_target] = stored
        return dense
    ids = batch.sparse_ids[at]
    which, entry = np.nonzero((ids >= 0) & (ids < batch.vocabulary))
    np.add.at(dense, (which, ids[which, entry]), stored[which, entry])
    return dense


def drafted_entries(batch: Batch, rows: IntArray, positions: IntArray) -> Floats:
    """Return q(x) at the draft of each (row, position), float64 [R]."""
    if batch.draft_probs is None:
        return np.ones(len(rows))
    at = batch.draft_index(rows, positions)
    if batch.sparse_ids is not None:
        listed = batch.sparse_ids[at] == batch.draft_token_ids[at][:, None]
        entries = np.where(listed, widen(batch.draft_probs[at]), 0)
        return (
            np.asarray(np.cumsum(entries, axis=1)[:, -1]) if entries.size else np.zeros(len(rows))
        )
    tokens = batch.drafter_token_ids[at]
    known = tokens < batch.draft_probs.shape[-1]
    entries = np.zeros(len(rows))
    known_at = tuple(index[known] for index in at)
    entries[known] = widen(batch.draft_probs[(*known_at, tokens[known])])
    return entries
