"""Chain verification in C++: the door to ``csrc/chain.hpp``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from draftproof import _native
from draftproof.batch import Batch
from draftproof.kernels.noise_native import uniform
from draftproof.kernels.threads import threads_for
from draftproof.types import IntArray
from draftproof.validation import VALIDATE, mass_tolerance

__all__ = ["Plain", "uniform", "verify_chain", "verify_plain"]


class Plain(NamedTuple):
    """What a plain call emits, the uniforms it drew, and the status bits of all rows together."""

    token_ids: IntArray
    num_emitted: IntArray
    num_draft: IntArray
    status: IntArray
    accept: npt.NDArray[np.float64]
    final: npt.NDArray[np.float64]
    bits: int


def verify_chain(
    batch: Batch,
    rule: str,
    accept: npt.NDArray[np.float64],
    final: npt.NDArray[np.float64],
    *,
    validate: str,
    num_threads: int | None = None,
) -> tuple[IntArray, IntArray, IntArray]:
    """Verify a batch; arguments and results are `draftproof.reference.batch.verify_chain`'s.

    Reads the drafted entries up to each row's first rejection and the one or two rows of its last
    draw; allocates the result alone (and, with a ``draft_to_target``, its inverse).
    """
    vocabulary = drafter_vocabulary = batch.target_probs.shape[-1]
    column_of = None
    if batch.draft_to_target is not None:
        drafter_vocabulary = len(batch.draft_to_target)
        if batch.draft_probs is not None and batch.sparse_ids is None:
            column_of = np.full(vocabulary, -1, dtype=np.int32)
            column_of[batch.draft_to_target] = np.arange(drafter_vocabulary)
    token_ids, num_emitted, status, _ = _run(
        batch.draft_token_ids,
        batch.drafter_token_ids,
        batch.draft_probs,
        batch.sparse_ids,
        column_of,
        batch.target_probs,
        batch.num_draft,
        batch.cu_num_draft,
        batch.greedy,
        np.ascontiguousarray(accept, np.float64),  # a generator of one's own may hand out anything
        np.ascontiguousarray(final, np.float64),
        batch.max_draft,
        drafter_vocabulary,
        rule,
        validate,
        num_threads,
    )
    return token_ids, num_emitted, status


def verify_plain(
    draft_token_ids: Any,
    draft_probs: Any,
    target_probs: Any,
    num_draft: Any,
    rng: np.random.Generator,
    rule: str,
    validate: str,
    num_threads: int | None,
) -> Plain | None:
    """Verify the padded layout as engines mostly pass it, with little ado.

    Returns:
        None, with `rng` as it was, unless the arguments are arrays that need neither conversion
        nor a closer look.
    """
    for array in (draft_token_ids, target_probs):
        if type(array) is not np.ndarray:
            return None
    for array in (draft_probs, num_draft):
        if array is not None and type(array) is not np.ndarray:
            return None
    try:
        shape = _native.plain_shape(draft_token_ids, draft_probs, target_probs, num_draft)
    except (ValueError, BufferError):  # a dtype that has no buffer
        return None
    if shape is None:
        return None
    size, longest, vocabulary = shape
    accept, final = rng.random((size, longest)), rng.random((size, 1))
    if num_draft is None:
        num_draft = np.empty(size, dtype=np.int64)
        num_draft.fill(longest)
    else:
        num_draft = num_draft.copy()  # the result keeps it
    token_ids, num_emitted, status, bits = _run(
        draft_token_ids,
        draft_token_ids,
        draft_probs,
        None,
        None,
        target_probs,
        num_draft,
        None,
        None,
        accept,
        final,
        longest,
        vocabulary,
        rule,
        validate,
        num_threads,
    )
    return Plain(token_ids, num_emitted, num_draft, status, accept, final, bits)


def _run(
    draft_token_ids: IntArray,
    drafter_token_ids: IntArray,
    draft_probs: npt.NDArray[Any] | None,
    sparse_ids: IntArray | None,
    column_of: npt.NDArray[np.int32] | None,
    target_probs: npt.NDArray[Any],
    num_draft: IntArray,
    cu_num_draft: IntArray | None,
    greedy: npt.NDArray[np.bool_] | None,
    accept: npt.NDArray[np.float64],
    final: npt.NDArray[np.float64],
    max_draft: int,
    drafter_vocabulary: int,
    rule: str,
    validate: str,
    num_threads: int | None,
) -> tuple[IntArray, IntArray, IntArray, int]:
    """Allocate the result, call the kernel, and return the status bits of all rows together too."""
    size, vocabulary = len(num_draft), target_probs.shape[-1]
    token_ids = np.empty((size, max_draft + 1), dtype=np.int64)
    num_emitted, status = np.empty((2, size), dtype=np.int64)
    draft_tolerance = 0.0
    if draft_probs is not None:
        draft_tolerance = mass_tolerance(draft_probs.dtype, draft_probs.shape[-1])
    bits = _native.verify_chain(
        draft_token_ids,
        drafter_token_ids,
        draft_probs,
        sparse_ids,
        column_of,
        target_probs,
        num_draft,
        cu_num_draft,
        greedy,
        accept,
        final,
        max_draft,
        drafter_vocabulary,
        rule == "exact-match",
        VALIDATE.index(validate),
        mass_tolerance(target_probs.dtype, vocabulary),
        draft_tolerance,
        threads_for(size, vocabulary * target_probs.itemsize, num_threads),
        token_ids,
        num_emitted,
        status,
    )
    return token_ids, num_emitted, status, bits
