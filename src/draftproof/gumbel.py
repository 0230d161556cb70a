"""Keyed sampling by a race between tokens: what a drafter and plain decoding share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from draftproof.arrays import as_integers, widen
from draftproof.batch import rows_batch
from draftproof.errors import complaint
from draftproof.types import IntArray
from draftproof.verify import verify_batch

__all__ = ["sample_gumbel"]


def sample_gumbel(
    dist: npt.ArrayLike,
    seeds: npt.ArrayLike,
    positions: npt.ArrayLike,
    *,
    draft_to_target: npt.ArrayLike | None = None,
    validate: str = "touched",
    on_bad_row: str = "raise",
    backend: str = "auto",
) -> IntArray:
    """Draw one token from each row by a keyed race: the text that ``verify(rule="gumbel")`` gives.

    ::

        token = argmin_v E(v) / dist[v], E(v) = -log1p(-u(v)) with u(v) keyed by (seed, position, v)

    Two laws that race on the same noise mostly agree, so a drafter that samples with its request's
    own seed and position has its drafts kept with probability
    sum_j 1 / sum_i max(p(i)/p(j), q(i)/q(j)).

    Args:
        dist: [B, V] floats, one law for each row. A draft law may have fewer columns than the
            target's.
        seeds: [B] integers, each request's key.
        positions: [B] integers, the index in its text of the token that each row draws: draft i of
            a round is drawn at the round's position + i.
        draft_to_target: [V] integers, the target id of each column, whose noise it takes; the
            tokens returned are still columns.
        validate, on_bad_row, backend: as for `draftproof.verify`.

    Returns:
        int64 [B] tokens; -1 for a bad row under ``on_bad_row="status"``.

    Exact up to the rounding of the logarithm; equal within a backend whatever surrounds a row.
    Consumes one uniform for each token. Raises as `draftproof.verify` does.

    Source: Daliri, Musco and Suresh, 2024 (arXiv 2408.07978).

    >>> sample_gumbel([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], seeds=[7, 7], positions=[0, 1]).tolist()
    [0, 1]
    """
    batch = rows_batch(dist)
    if draft_to_target is not None:
        columns = as_integers("draft_to_target", draft_to_target, (batch.vocabulary,))
        _refuse_bad_map(columns)
        laws = np.zeros((batch.size, 1, 1 + int(columns.max(initial=0))))
        laws[:, :, columns] = widen(batch.target_probs)
        batch = batch._replace(target_probs=laws)
    tokens = verify_batch(
        batch,
        None,
        None,
        seeds,
        positions,
        rule="gumbel",
        validate=validate,
        on_bad_row=on_bad_row,
        backend=backend,
    ).token_ids[:, 0]
    if draft_to_target is None:
        return tokens
    column_of = np.full(batch.vocabulary, -1)
    column_of[columns] = np.arange(len(columns))
    return np.where(tokens < 0, -1, column_of[tokens])


def _refuse_bad_map(columns: IntArray) -> None:
    repeated = len(np.unique(columns)) < len(columns)
    if repeated or (columns < 0).any():
        raise ValueError(
            complaint(
                "draft_to_target",
                "",
                found="a target id twice" if repeated else f"the id {columns.min()}",
                wanted="a target id >= 0 of its own for each column",
                fix="pass absolute target ids",
            )
        )
