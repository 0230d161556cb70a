"""Plain sampling from logits: what speculation must equal in law."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.arrays import as_probabilities
from draftproof.foreign import marked, read_array
from draftproof.logits.params import SamplingParams
from draftproof.logits.verify import verify_logits
from draftproof.types import IntArray

__all__ = ["sample"]


def sample(
    logits: npt.ArrayLike,
    params: SamplingParams | Any = None,
    seeds: npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    history: Any = None,
    *,
    prompts: Any = None,
    rng: np.random.Generator | None = None,
    uniforms: npt.ArrayLike | None = None,
    token_mask: Any = None,
    validate: str = "touched",
    on_bad_row: str = "raise",
    backend: str = "auto",
    num_threads: int | None = None,
) -> IntArray:
    """Draw one token for each request: `verify_logits` for rows without drafts.

    Args:
        logits: [B, V] floats.
        params, history, prompts: as for `process`.
        seeds, positions: [B]: the token at a position depends on (seed, position) and its law
            alone. Requests whose params have a ``seed`` use that.
        rng: consumes ``rng.random((B, 1))``, instead.
        uniforms: [B] in [0, 1), instead.
        token_mask: bool [B, V], or [B, ceil(V / 32)] words of packed bits.
        validate, on_bad_row, backend, num_threads: as for `verify_logits`.

    Returns:
        int64 [B] tokens; -1 for a bad row under ``on_bad_row="status"``.

    At temperature 0 it is the argmax bit for bit, ties to the lowest id. Exactness and errors are
    `verify_logits`'s; consumes one uniform a row.

    >>> logits = [[0.0, 1.0, 1.0], [0.0, 0.0, 9.0]]
    >>> sample(logits, SamplingParams(temperature=0), uniforms=[0, 0]).tolist()
    [1, 2]
    >>> sample(logits, SamplingParams(temperature=0.5), seeds=[7, 7], positions=[0, 0]).tolist()
    [2, 2]
    """
    rows = marked(as_probabilities("logits", logits, (), "B", "V"))
    size = len(rows)
    if token_mask is not None:
        token_mask = read_array("token_mask", token_mask)[:, None]
    result = verify_logits(
        np.zeros((size, 0), dtype=np.int64),
        None,
        rows[:, None, :],
        None,
        rng,
        params=params,
        history=history,
        prompts=prompts,
        token_mask=token_mask,
        uniforms=None if uniforms is None else (np.zeros((size, 0)), uniforms),
        seeds=seeds,
        positions=positions,
        validate=validate,
        on_bad_row=on_bad_row,
        backend=backend,
        num_threads=num_threads,
    )
    return result.token_ids[:, 0]
