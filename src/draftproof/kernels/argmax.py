"""Greedy verification against a target argmax that the caller already has."""

from __future__ import annotations

import numpy as np

from draftproof.errors import BadRowError, complaint
from draftproof.types import IntArray, RowStatus

__all__ = ["match_argmax", "refuse_bad_argmax"]


def match_argmax(
    draft_token_ids: IntArray, target_argmax: IntArray, num_draft: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Keep each row's drafts while they equal the argmax, then emit the argmax.

    Args:
        draft_token_ids: [B, K].
        target_argmax: [B, K+1].
        num_draft: [B].

    Returns:
        token_ids [B, K+1], num_emitted [B], num_draft [B], status [B]: `VerifyResult`'s first
        fields.
    """
    size, longest = draft_token_ids.shape
    depth = np.arange(longest + 1)
    valid = depth[:-1] < num_draft[:, None]
    matches = valid & (draft_token_ids == target_argmax[:, :-1])
    num_accepted = np.logical_and.accumulate(matches, axis=1).sum(axis=1)
    status = np.zeros(size, dtype=np.int64)
    reached = depth <= num_accepted[:, None]
    status[(reached & (target_argmax < 0)).any(axis=1)] = RowStatus.TARGET_NOT_FINITE
    status[(valid & (draft_token_ids < 0)).any(axis=1)] = RowStatus.TOKEN_OUT_OF_RANGE
    status[(num_draft < 0) | (num_draft > longest)] = RowStatus.LENGTH_OUT_OF_RANGE
    num_emitted = np.where(status == 0, num_accepted + 1, 0)
    token_ids = np.where(depth < num_emitted[:, None], target_argmax, -1)
    return token_ids, num_emitted, num_draft, status


def refuse_bad_argmax(
    draft_token_ids: IntArray, target_argmax: IntArray, num_draft: IntArray
) -> None:
    """Raise `BadRowError` for the first row that `match_argmax` cannot decide."""
    *_, status = match_argmax(draft_token_ids, target_argmax, num_draft)
    if not status.any():
        return
    row = int(np.argmax(status != 0))
    longest = draft_token_ids.shape[1]
    if status[row] == RowStatus.LENGTH_OUT_OF_RANGE:
        argument, place, found = "num_draft", f"row {row}", num_draft[row]
        wanted = f"a length in 0..{longest}"
    else:
        argument, ids = "target_argmax", target_argmax[row]
        if status[row] == RowStatus.TOKEN_OUT_OF_RANGE:
            argument, ids = "draft_token_ids", draft_token_ids[row]
        position = int(np.argmax(ids < 0))
        place, found = f"row {row}, position {position}", ids[position]
        wanted = "a token id >= 0"
    raise BadRowError(
        complaint(argument, place, found=found, wanted=wanted, fix="pass this row's own values"),
        row,
        int(status[row]),
    )
