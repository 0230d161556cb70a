"""The status of many rows at once: what `draftproof.validation.first_fault` says of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch
from draftproof.kernels.laws_numpy import drafted_entries
from draftproof.types import IntArray, RowStatus
from draftproof.validation import DRAFT, TARGET, Side, mass_tolerance

__all__ = [
    "entry_status",
    "first_in_row",
    "length_and_id_status",
    "row_status",
    "sparse_id_status",
    "uniform_status",
    "valid_row_status",
]

Floats = npt.NDArray[np.float64]


def length_and_id_status(batch: Batch) -> IntArray:
    """Judge each row's length and its valid ids, [B]."""
    lengths, longest = batch.num_draft, batch.max_draft
    status = np.zeros(batch.size, dtype=np.int64)
    status[(lengths < batch.least_draft) | (lengths > longest)] = RowStatus.LENGTH_OUT_OF_RANGE
    rows, positions = np.nonzero((np.arange(longest) < lengths[:, None]) & (status == 0)[:, None])
    ids = batch.drafter_token_ids[batch.draft_index(rows, positions)]
    status[rows[(ids < 0) | (ids >= batch.drafter_vocabulary)]] = RowStatus.TOKEN_OUT_OF_RANGE
    return status


def uniform_status(u: Floats) -> IntArray:
    """Judge uniforms, elementwise."""
    return np.where((u >= 0) & (u < 1), 0, np.int64(RowStatus.UNIFORM_OUT_OF_RANGE))


def entry_status(numbers: Floats, side: Side) -> IntArray:
    """Judge single probabilities, elementwise."""
    negative = np.where(numbers < 0, np.int64(side.negative), 0)
    return np.where(np.isfinite(numbers), negative, np.int64(side.not_finite))


def row_status(
    stored: npt.NDArray[Any], side: Side, sparse_ids: IntArray | None = None
) -> IntArray:
    """Judge every number and the mass of each row [R, W]; negative ids do not count."""
    tolerance = mass_tolerance(stored.dtype, stored.shape[1])
    numbers = widen(stored)
    if sparse_ids is not None:
        numbers[sparse_ids < 0] = 0
    masses = np.zeros(len(numbers))
    if numbers.shape[1]:  # in token order, as everywhere
        masses = np.cumsum(numbers, axis=1)[:, -1]
    status = np.where(np.abs(masses - 1) <= tolerance, 0, np.int64(side.mass))
    status[(numbers < 0).any(axis=1)] = side.negative
    status[~np.isfinite(numbers).all(axis=1)] = side.not_finite
    return status


def sparse_id_status(ids: IntArray | None, vocabulary: int, size: int) -> IntArray:
    """Judge the ids of sparse rows [R, M], if they are sparse."""
    if ids is None:
        return np.zeros(size, dtype=np.int64)
    beyond = (ids >= vocabulary).any(axis=1)
    return np.where(beyond, np.int64(RowStatus.SPARSE_ID_OUT_OF_RANGE), 0)


def first_in_row(status: IntArray, rows: IntArray, size: int) -> IntArray:
    """Reduce the status of entries in reading order to that of rows: the first fault wins."""
    first = np.zeros(size, dtype=np.int64)
    faulty = np.flatnonzero(status)[::-1]
    first[rows[faulty]] = status[faulty]
    return first


def valid_row_status(batch: Batch, rows: IntArray) -> IntArray:
    """Judge every valid row of p and q, and q(x) > 0 at every draft, for some rows of the batch."""
    depth = np.arange(batch.max_draft + 1)
    which, positions = np.nonzero(depth <= batch.num_draft[rows][:, None])
    target = batch.target_probs[batch.target_index(rows[which], positions)]
    status = row_status(target, TARGET)
    if batch.greedy_logits and batch.greedy is not None:
        largest = np.where((target > -np.inf).any(axis=1), RowStatus.OK, TARGET.not_finite)
        status = np.where(batch.greedy[rows[which]], largest, status)
    if batch.draft_probs is not None:
        drafted = positions < batch.num_draft[rows][which]
        owners, places = rows[which[drafted]], positions[drafted]
        at = batch.draft_index(owners, places)
        ids = None if batch.sparse_ids is None else batch.sparse_ids[at]
        draft = sparse_id_status(ids, batch.vocabulary, len(owners))
        draft = np.where(draft == 0, row_status(batch.draft_probs[at], DRAFT, ids), draft)
        zero = (draft == 0) & (drafted_entries(batch, owners, places) == 0)
        draft[zero] = RowStatus.DRAFT_ZERO
        status[drafted] = np.where(status[drafted] == 0, draft, status[drafted])
    return first_in_row(status, which, len(rows))
