"""The straightforward verifier in NumPy: what a careful user would write."""

from __future__ import annotations

import numpy as np

from bench.inputs import Floats, Ints

__all__ = ["verify"]


def verify(
    draft_token_ids: Ints,
    draft_probs: Floats,
    target_probs: Floats,
    rng: np.random.Generator,
) -> tuple[Ints, Ints]:
    """Return (token_ids [B, K+1] padded with -1, num_emitted [B]) by speculative sampling.

    Consumes ``rng.random((B, K))``, then ``rng.random((B, 1))``. Sums run in the arrays' type.
    """
    p, q = target_probs, draft_probs
    (B, K), V = draft_token_ids.shape, p.shape[-1]
    accept, final = rng.random((B, K)), rng.random((B, 1))
    rows, depth = np.arange(B), np.arange(K)
    at = rows[:, None], depth, draft_token_ids
    accepts = accept * q[at] < p[at]
    tau = np.cumprod(accepts, axis=1).sum(axis=1)
    rejected = tau < K
    dist = p[rows, tau]
    dist[rejected] -= q[rows[rejected], tau[rejected]]
    np.maximum(dist, 0, out=dist)
    last = (np.cumsum(dist, axis=1) < final * dist.sum(axis=1, keepdims=True)).sum(axis=1)
    token_ids = np.full((B, K + 1), -1, dtype=np.int64)
    token_ids[:, :K] = np.where(depth < tau[:, None], draft_token_ids, -1)
    token_ids[rows, tau] = np.minimum(last, V - 1)
    return token_ids, tau + 1
