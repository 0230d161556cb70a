"""Chain verification from logits in C++: the door to ``csrc/logit_chain.hpp``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof import _native
from draftproof.batch import Batch
from draftproof.kernels.chain_native import column_of
from draftproof.kernels.logits_short import columns, verify_short
from draftproof.kernels.noise_native import uniform
from draftproof.kernels.threads import available_threads
from draftproof.logits.rows import LogitRows
from draftproof.rules import PLAIN_RULES
from draftproof.types import IntArray, Logprobs
from draftproof.validation import VALIDATE, mass_tolerance

__all__ = ["list_logprobs", "uniform", "verify_chain", "verify_short"]

_RULES = (*PLAIN_RULES, "gumbel")
"""In the order of the kernel's enum."""


def verify_chain(
    batch: Batch,
    rule: str,
    accept: npt.NDArray[Any],
    final: npt.NDArray[Any],
    *,
    validate: str,
    num_threads: int | None = None,
) -> tuple[IntArray, IntArray, IntArray]:
    """Verify a batch; arguments and results are `draftproof.reference.batch.verify_chain`'s.

    Each row of logits that a rule reaches is read once, and once more for a last token: of it only
    a block, unless a draft was rejected or a filter acts. No row is copied. By gumbel every row is
    read twice, the second time in float64.
    """
    target: Any = batch.target_probs
    draft: Any = batch.draft_probs
    from_logits = isinstance(draft, LogitRows)
    size = len(batch.num_draft)
    token_ids = np.empty((size, batch.max_draft + 1), dtype=np.int64)
    num_emitted, status = np.empty((2, size), dtype=np.int64)
    draft_tolerance = 0.0
    if draft is not None and not from_logits:
        draft_tolerance = mass_tolerance(draft.dtype, draft.shape[-1])
    _native.verify_logits(
        batch.draft_token_ids,
        batch.drafter_token_ids,
        draft.logits if from_logits else draft,
        batch.sparse_ids,
        column_of(batch),
        target.logits,
        _side(target),
        _side(draft) if from_logits else None,
        batch.num_draft,
        batch.cu_num_draft,
        batch.greedy,
        np.ascontiguousarray(accept, np.uint64 if rule == "gumbel" else np.float64),
        np.ascontiguousarray(final, np.int64 if rule == "gumbel" else np.float64),
        batch.max_draft,
        batch.drafter_vocabulary,
        _RULES.index(rule),
        VALIDATE.index(validate),
        draft_tolerance,
        num_threads,
        available_threads,
        token_ids,
        num_emitted,
        status,
    )
    return token_ids, num_emitted, status


def list_logprobs(
    batch: Batch,
    token_ids: IntArray,
    num_emitted: IntArray,
    raw: bool,
    logprobs: Logprobs,
    num_threads: int | None,
) -> npt.NDArray[np.bool_]:
    """Fill the tables of `draftproof.logits.logprobs.make_logprobs`.

    Returns:
        [B, K+1], which rows are filled: those of emitted tokens, but for rows without a law.
    """
    target: Any = batch.target_probs
    is_written = np.zeros(token_ids.shape, dtype=np.bool_)
    _native.list_logprobs(
        target.logits,
        _side(target),
        batch.num_draft,
        batch.cu_num_draft,
        batch.greedy,
        batch.max_draft,
        token_ids,
        num_emitted,
        raw,
        num_threads,
        available_threads,
        logprobs.token_logprobs,
        logprobs.token_ranks,
        logprobs.top_token_ids,
        logprobs.top_logprobs,
        is_written,
    )
    return is_written


def _side(rows: LogitRows) -> _native.LogitSide:
    """What becomes of one side's logits: parameters by request, edits and masks by row."""
    arrays = tuple(map(np.ascontiguousarray, columns(rows.params)))
    return arrays, rows.edit_table, rows.mask_words
