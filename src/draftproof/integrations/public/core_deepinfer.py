"""core-deepinfer: greedy verification in NumPy, one row at a time. It draws nothing."""

from __future__ import annotations

import numpy as np

from draftproof.integrations.public.tensors import Array

__all__ = ["verify_greedy"]


def verify_greedy(draft: Array, p: Array, num_draft: Array) -> tuple[Array, Array]:
    """Call ``core_deepinfer.speculative.verify_greedy``, which takes any scores, on the laws."""
    from core_deepinfer import speculative

    out = np.full((len(draft), draft.shape[1] + 1), -1, dtype=np.int64)
    n_out = np.zeros(len(draft), dtype=np.int64)
    for b, g in enumerate(num_draft.tolist()):
        tokens = speculative.verify_greedy(p[b, : g + 1], draft[b, :g].tolist()).tokens
        n_out[b] = len(tokens)
        out[b, : len(tokens)] = tokens
    return out, n_out
