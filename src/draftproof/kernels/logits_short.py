"""`draftproof.verify_logits` for what engines mostly pass, with little ado."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof import _native
from draftproof.logits.params import SamplingParams
from draftproof.logits.params_batch import ParamsBatch
from draftproof.types import DraftLogits, VerifyResult

__all__ = ["columns", "verify_short"]

Floats = npt.NDArray[np.float64]
Uniforms = tuple[Floats, Floats]


def verify_short(
    draft_token_ids: Any,
    draft: DraftLogits | None,
    target_logits: Any,
    num_draft: Any,
    rng: np.random.Generator,
    params: SamplingParams | None,
    rule: str,
    validate: str,
    on_bad_row: str,
    backend: str,
    num_threads: int | None,
) -> VerifyResult | Uniforms | None:
    """Verify padded arrays that need neither conversion nor a closer look.

    Returns:
        None, with `rng` as it was, where the long way has to be taken; or the uniforms, with which
        the long way then raises what is wrong with a row.
    """
    short = _native.verify_logits_plain(
        draft_token_ids, None if draft is None else draft.logits, target_logits, num_draft, rng,
        params, rule, validate, on_bad_row, backend, num_threads, _plain_side,
    )  # fmt: skip
    if short is None or type(short) is VerifyResult:
        return short
    size, longest = draft_token_ids.shape
    accept, final = np.split(short[1], [size * longest])
    return accept.reshape(size, longest), final


def columns(params: ParamsBatch) -> tuple[npt.NDArray[Any], ...]:
    """Return the parameters as the kernel reads them."""
    return (
        params.temperature,
        params.top_p,
        params.min_p,
        params.typical_p,
        params.top_k,
        params.filter_codes,
        params.tie_codes,
    )


@functools.lru_cache(maxsize=64)
def _plain_side(
    params: SamplingParams, size: int
) -> tuple[tuple[npt.NDArray[Any], ...], npt.NDArray[np.bool_] | None] | None:
    """What the kernel reads of them, and which rows are greedy; None if a text matters."""
    batch = ParamsBatch.alike(params, size)
    if (batch.edits | batch.masks | batch.seeded).any():
        return None
    greedy = batch.temperature == 0
    return tuple(map(np.ascontiguousarray, columns(batch))), greedy if greedy.any() else None
