"""`draftproof.verify_logits` for what engines mostly pass, with little ado."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof import _native
from draftproof.kernels.threads import available_threads
from draftproof.logits.params import SamplingParams
from draftproof.logits.params_batch import ParamsBatch
from draftproof.rules import PLAIN_RULES
from draftproof.types import DraftLogits, IntArray, VerifyResult
from draftproof.validation import VALIDATE

__all__ = ["columns", "verify_short"]

Floats = npt.NDArray[np.float64]
Uniforms = tuple[Floats, Floats]

_DTYPES = frozenset(map(np.dtype, (np.float32, np.float16, np.float64)))
_INTEGERS = np.dtype(np.int64)


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
    q = None if draft is None else draft.logits
    arrays = (draft_token_ids, target_logits)
    if any(type(array) is not np.ndarray for array in arrays) or draft_token_ids.ndim != 2:
        return None
    size, longest = draft_token_ids.shape
    shape, ids = target_logits.shape, draft_token_ids
    if (
        len(shape) != 3
        or shape[:2] != (size, longest + 1)
        or not shape[2]
        or target_logits.dtype not in _DTYPES
        or ids.dtype != _INTEGERS
        or not ids.flags.carray
    ):
        return None
    if q is not None and (
        type(q) is not np.ndarray or q.shape != (size, longest, shape[2]) or q.dtype not in _DTYPES
    ):
        return None
    if (
        rule not in PLAIN_RULES
        or validate not in VALIDATE
        or on_bad_row not in ("raise", "status")
        or backend not in ("auto", "native")
        or not (num_threads is None or (type(num_threads) is int and num_threads > 0))
    ):
        return None
    plain = _plain(params, size)
    if plain is None:
        return None
    lengths = _lengths(num_draft, size, longest)
    if lengths is None:
        return None
    side, greedy = plain
    accept, final = rng.random((size, longest)), rng.random((size, 1))[:, 0]
    token_ids = np.empty((size, longest + 1), dtype=np.int64)
    num_emitted, status = np.empty((2, size), dtype=np.int64)
    _native.verify_logits(
        ids, ids, q, None, None, target_logits, side, None if q is None else side, lengths, None,
        greedy, accept, final, longest, shape[2], PLAIN_RULES.index(rule),
        VALIDATE.index(validate), 0.0, num_threads, available_threads, token_ids, num_emitted,
        status,
    )  # fmt: skip
    if on_bad_row == "raise" and np.count_nonzero(status) and status.max() > 1:
        return accept, final
    return VerifyResult(token_ids, num_emitted, lengths, status, "native")


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
def _plain(
    params: SamplingParams | None, size: int
) -> tuple[_native.LogitSide, npt.NDArray[np.bool_] | None] | None:
    """One side of the kernel's arguments, and which rows are greedy; None if a text matters."""
    batch = ParamsBatch.alike(SamplingParams() if params is None else params, size)
    if (batch.edits | batch.masks | batch.seeded).any():
        return None
    greedy = batch.temperature == 0
    return (tuple(map(np.ascontiguousarray, columns(batch))), None, None), (
        greedy if greedy.any() else None
    )


def _lengths(num_draft: Any, size: int, longest: int) -> IntArray | None:
    if num_draft is None:
        return np.full(size, longest, dtype=np.int64)
    if (
        type(num_draft) is np.ndarray
        and num_draft.dtype == _INTEGERS
        and num_draft.shape == (size,)
    ):
        return num_draft.copy()  # the result keeps it
    return None
