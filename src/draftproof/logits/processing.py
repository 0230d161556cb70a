"""The law that a request's logits make: what drafters sample from and verifiers judge by."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.arrays import as_integers, as_probabilities
from draftproof.batch import padded_batch
from draftproof.errors import BadRowError, complaint
from draftproof.foreign import marked, read_array
from draftproof.kernels.call_numpy import chunks
from draftproof.logits.batch import logits_batch
from draftproof.logits.params import SamplingParams
from draftproof.logits.rows import LogitRows
from draftproof.types import RowStatus

__all__ = ["process"]


def process(
    logits: npt.ArrayLike,
    params: SamplingParams | Any = None,
    history: Any = None,
    *,
    prompts: Any = None,
    draft_token_ids: npt.ArrayLike | None = None,
    num_draft: npt.ArrayLike | None = None,
    token_mask: Any = None,
    on_bad_row: str = "raise",
    backend: str = "numpy",
) -> npt.NDArray[np.float64]:
    """Return the law that each row of logits makes, in the order that each request's params name.

    ::

        logits -> bias, penalties (of history and of the drafts before this position)
               -> -inf for ends before min_tokens, and for what a mask bans
               -> temperature, top-k, top-p, min-p, typical (order="standard")
               -> softmax over what is kept

    Args:
        logits: [B, V] floats, or [B, L, V]: L positions of each request.
        params: one `SamplingParams`, B of them, or a `ParamsBatch`.
        history: B sequences of token ids, what each request has emitted so far.
        prompts: B sequences of token ids.
        draft_token_ids: [B, >= L-1] integers, for [B, L, V]: position i sees the drafts before it.
        num_draft: [B] integers: rows past it are not read, and are NaN in the result.
        token_mask: bool of the logits' shape, or words of packed bits [..., ceil(V / 32)].
        on_bad_row: ``"raise"``, or ``"status"``: a row of which no law can be made is NaN.
        backend: ``"numpy"``, or ``"reference"``, the definition; equal up to rounding.

    Returns:
        float64 of the logits' shape. A row at temperature 0 is a point mass on its argmax.

    Exact up to float64 rounding. Consumes no uniforms.

    Raises:
        ValueError, TypeError: as `verify_logits` does.
        BadRowError: for the first row with NaN or +inf among the tokens that are not banned, or
            without such a token.

    >>> import numpy as np
    >>> logits = np.log([[0.4, 0.3, 0.2, 0.1]])
    >>> process(logits, SamplingParams(top_k=2, top_p=0.5)).round(3).tolist()
    [[1.0, 0.0, 0.0, 0.0]]
    >>> params = SamplingParams(top_k=2, top_p=0.5, order="sglang")  # both of one law
    >>> process(logits, params).round(3).tolist()
    [[0.571, 0.429, 0.0, 0.0]]
    """
    for name, value, options in (
        ("on_bad_row", on_bad_row, ("raise", "status")),
        ("backend", backend, ("numpy", "reference")),
    ):
        if value not in options:
            wanted = f"one of {', '.join(map(repr, options))}"
            fix = "choose one of these"
            raise ValueError(complaint(name, "", found=repr(value), wanted=wanted, fix=fix))
    stored = marked(as_probabilities("logits", logits, (), *_axes(logits)))
    shape = stored.shape
    if len(shape) == 2:
        stored = stored[:, None, :]
        token_mask = None if token_mask is None else read_array("token_mask", token_mask)[:, None]
    size, length = stored.shape[:2]
    ids = np.full((size, max(length - 1, 0)), -1, dtype=np.int64)
    if draft_token_ids is not None:
        given = as_integers("draft_token_ids", draft_token_ids, (size,), "K")
        if given.shape[1] < length - 1:
            found, wanted = f"shape {list(given.shape)}", f"at least {length - 1} columns"
            fix = "pass the drafts before each position of logits"
            raise ValueError(complaint("draft_token_ids", "", found=found, wanted=wanted, fix=fix))
        ids = given[:, : length - 1]
    batch = padded_batch(ids, None, stored, num_draft, names=("draft", "logits"))
    batch = logits_batch(
        batch, None, params, None, history, prompts, token_mask, None, None,
        definition=backend == "reference",
    )  # fmt: skip
    rows: Any = batch.target_probs
    needs = rows.params.edits.any() and length > 1
    if needs and draft_token_ids is None:
        found, wanted = "none, with penalties or biases", "the drafts before each position"
        fix = "pass draft_token_ids [B, L-1]"
        raise ValueError(complaint("draft_token_ids", "", found=found, wanted=wanted, fix=fix))
    law = LogitRows(
        rows.logits, rows.params, rows.texts, rows.contexts, rows.greedy,
        token_mask=rows.token_mask, definition=backend == "reference",
    )  # fmt: skip
    laws = np.full(stored.shape, np.nan)
    read = np.arange(length) <= np.clip(batch.num_draft, -1, length - 1)[:, None]
    for i in range(length):
        for part in chunks(np.flatnonzero(read[:, i]), batch.vocabulary):
            laws[part, i] = law[part, i]
    for row, i in np.argwhere(read & np.isnan(laws[..., 0])) if on_bad_row == "raise" else ():
        reason = law.unusable(f"row {row}, position {i}")
        assert reason is not None, "a row that reads as NaN has a reason"
        place, found, wanted, fix = reason
        message = complaint("logits", place, found=found, wanted=wanted, fix=fix)
        raise BadRowError(message, int(row), int(RowStatus.TARGET_NOT_FINITE))
    return laws.reshape(shape)


def _axes(logits: Any) -> tuple[str, ...]:
    """The names of the axes that logits have, or should have."""
    return ("B", "L", "V") if np.ndim(logits) == 3 else ("B", "V")
