"""Logits and parameters brought to a checked `Batch`, whose laws are made when they are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from draftproof.arrays import as_booleans
from draftproof.batch import Batch
from draftproof.errors import complaint
from draftproof.logits.masks import Mask, check_mask, read_mask
from draftproof.logits.params_batch import ParamsBatch, read_params
from draftproof.logits.rows import Contexts, LogitRows
from draftproof.logits.texts import Texts, read_texts
from draftproof.types import DraftLogits

__all__ = ["NAMES", "chain_contexts", "logits_batch", "unwrapped"]

NAMES = ("draft", "target_logits")
"""What the caller calls the two laws."""


def unwrapped(draft: Any) -> tuple[Any, tuple[str, str]]:
    """Return the array that a draft law is made of, and what the caller calls the laws."""
    if isinstance(draft, DraftLogits):
        return draft.logits, ("draft.logits", NAMES[1])
    return draft, NAMES


def logits_batch(
    batch: Batch,
    draft: Any,
    params: Any,
    draft_params: Any,
    history: Any,
    prompts: Any,
    token_mask: Any,
    draft_token_mask: Any,
    greedy: Any,
    definition: bool,
    contexts: Contexts | None = None,
) -> Batch:
    """Put laws in the place of a batch's logits.

    Args:
        batch: whose ``target_probs`` are logits, and ``draft_probs`` too if `draft` is a
            `DraftLogits`.
        definition: make laws by the reference alone.
        contexts: where the rows of both sides stand, if the batch holds the nodes of trees.
    """
    columns = read_params("params", params, batch.size)
    cold, any_cold = columns.greedy, columns.any_greedy
    if greedy is not None:
        cold = cold | as_booleans("greedy", greedy, (batch.size,))
        any_cold = bool(cold.any())
    _check(columns, "params", batch, 1)
    mask = _mask("token_mask", token_mask, batch.target_probs.shape, batch.vocabulary)
    sampled, draft_mask = columns, None
    if isinstance(draft, DraftLogits):
        sampled, draft_mask = _draft_params(
            batch, columns, draft_params, mask, draft_token_mask, contexts is not None
        )
    else:
        _refuse_draft_options(draft_params, draft_token_mask)
    texts = read_texts(history, prompts, (columns, sampled), batch.vocabulary)
    rows: Any = LogitRows(
        batch.target_probs, columns, texts, contexts or chain_contexts(batch, True), cold,
        token_mask=mask, greedy_logits=True, definition=definition,
    )  # fmt: skip
    laws: Any = batch.draft_probs
    if isinstance(draft, DraftLogits):
        places = contexts or chain_contexts(batch, False)
        laws = _draft_rows(batch, sampled, texts, places, draft_mask, definition)
    return batch._replace(
        target_probs=rows,
        draft_probs=laws,
        greedy=cold if any_cold else None,
        greedy_logits=any_cold,
    )


def chain_contexts(batch: Batch, target: bool) -> Contexts:
    """Say where the rows of a batch's target, or of its drafts, stand."""
    starts = batch.cu_num_draft
    if starts is not None and target:
        starts = starts + np.arange(len(starts))

    def place(at: tuple[Any, ...]) -> tuple[Any, Any]:
        if starts is None:
            return at[0], at[1]
        requests = np.searchsorted(starts, at[0], side="right") - 1
        return requests, at[0] - starts[requests]

    return Contexts(
        place,
        lambda row, i: batch.draft_token_ids[batch.draft_index(row, np.arange(i))],
        lambda row, i: i < batch.num_draft[row] + target,
        lambda row, i: f"row {row}, position {i}",
    )


def _check(columns: ParamsBatch, name: str, batch: Batch, beyond: int) -> None:
    """Refuse ids and masks that do not fit; a request has so many contexts beyond its drafts."""
    if columns.any_edits:
        columns.check_ids(name, batch.vocabulary)
    if columns.any_masks:
        contexts = np.clip(batch.num_draft, 0, batch.max_draft) + beyond
        columns.check_masks(name, batch.vocabulary, contexts)


def _mask(name: str, value: Any, shape: tuple[int, ...], vocabulary: int) -> Mask | None:
    if value is None:
        return None
    mask = read_mask(name, value)
    check_mask(name, mask, shape[:-1], vocabulary)
    return mask


def _draft_params(
    batch: Batch,
    target: ParamsBatch,
    params: Any,
    mask: Mask | None,
    draft_mask: Any,
    trees: bool,
) -> tuple[ParamsBatch, Mask | None]:
    """Return what the drafter sampled by: what it is said to have, else what the target has."""
    assert batch.draft_probs is not None, "the caller has logits of drafts"
    own = _mask("draft_token_mask", draft_mask, batch.draft_probs.shape, batch.vocabulary)
    columns = target
    if params is not None:
        columns = read_params("draft_params", params, batch.size)
        _check(columns, "draft_params", batch, int(trees))
    elif own is None and mask is not None:
        own = mask if trees else _without_bonus(batch, mask)
    if batch.draft_to_target is not None and (
        own is not None or columns.any_edits or columns.any_masks
    ):
        raise ValueError(
            complaint(
                "draft_params" if params is not None else "params",
                "",
                found="penalties, biases or masks, with a draft_to_target",
                wanted="temperature and filters alone for logits over the drafter's own ids",
                fix="pass draft_params without them if the drafter sampled so, or the draft's "
                "probabilities",
            )
        )
    return columns, own


def _without_bonus(batch: Batch, mask: Mask) -> Mask:
    """The rows of a mask that belong to drafts."""
    if batch.cu_num_draft is None:
        return mask[:, :-1]
    bonus = batch.cu_num_draft[1:] + np.arange(batch.size)
    return np.delete(mask, bonus, axis=0)


def _draft_rows(
    batch: Batch,
    columns: ParamsBatch,
    texts: Texts,
    contexts: Contexts,
    mask: Mask | None,
    definition: bool,
) -> LogitRows:
    logits = batch.draft_probs
    assert logits is not None, "the caller has logits of drafts"
    missing = batch.vocabulary - logits.shape[-1]
    looks = mask is not None or columns.any_edits or columns.any_masks
    if missing > 0 and looks and batch.draft_to_target is None:
        banned = 0xFF80 if logits.dtype == np.uint16 else -np.inf  # bfloat16's word for -inf
        widths = [(0, 0)] * (logits.ndim - 1) + [(0, missing)]
        logits = np.pad(logits, widths, constant_values=banned)
    return LogitRows(
        logits, columns, texts, contexts, columns.greedy,
        token_mask=mask, definition=definition,
    )  # fmt: skip


def _refuse_draft_options(params: Any, mask: Any) -> None:
    for name, value in (("draft_params", params), ("draft_token_mask", mask)):
        if value is not None:
            raise ValueError(
                complaint(
                    name,
                    "",
                    found="one, with a draft that is no DraftLogits",
                    wanted="none: probabilities are the law that was sampled, whatever made them",
                    fix="pass draft=DraftLogits(logits), or drop it",
                )
            )
