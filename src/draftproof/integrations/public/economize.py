"""economize: its sampling verifiers, on ragged batches, with its sampler at temperature 1.

Its own draws: ``torch.rand`` and ``torch.multinomial`` of the sampler's generator, seeded for
each call. Padding is zeros: its own loop never shows its verifiers anything but numbers.
"""

from __future__ import annotations

import numpy as np

from draftproof.integrations.public.tensors import Array, logits

__all__ = ["verify", "verify_typical"]


def verify(
    draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Call ``verify_batch`` of its verifier "rejection"."""
    return _verify("rejection", draft, q, p, num_draft, rng)


def verify_typical(
    draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Call ``verify_batch`` of its verifier "typical", which its documentation calls lossy."""
    return _verify("typical", draft, q, p, num_draft, rng)


def _verify(
    name: str, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    import torch
    from economize.decoding import DecodeConfig, Draft, TopPSampler
    from economize.decoding.verifiers import VERIFIERS

    B, K = draft.shape
    out = np.full((B, K + 1), -1, dtype=np.int64)
    if B == 0:
        return out, num_draft
    past = np.arange(K) >= num_draft[:, None]
    q, p = q.copy(), p.copy()
    q[past], p[:, 1:][past] = 0.0, 1.0
    drafts = Draft(
        torch.from_numpy(draft), num_draft.tolist(), probs=torch.from_numpy(q.astype(np.float32))
    )
    sampler = TopPSampler(seed=int(rng.integers(1 << 63)))
    verifier = VERIFIERS.get(name)(DecodeConfig(verifier=name))
    accepted, last = verifier.verify_batch(logits(p), drafts, sampler, drafts.tokens, [0] * B)
    n = accepted.numpy()
    out[:, :K] = np.where(np.arange(K) < n[:, None], draft, -1)
    out[np.arange(B), n] = last.numpy()
    return out, n + 1
