"""flashspec: its acceptance steps, on batches.

Its own draws: ``torch.rand`` and ``torch.multinomial`` of a generator that is passed in, seeded
for each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from draftproof.integrations.public.tensors import Array, logits

__all__ = ["verify", "verify_lookup", "verify_typical"]

Step = Callable[..., Any]
"""(ids [n, g], log q [n, g, V], log p [n, g+1, V], generator) -> (accepted, next token) [n, 2]."""


def verify(
    draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Call ``rejection_step``, once for each length of draft."""
    from flashspec.sampling.rejection import rejection_step

    return _by_length(draft, q, p, num_draft, rng, rejection_step)


def verify_lookup(
    draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Call ``rejection_step_onehot``, the rule for drafts that are looked up; it needs no q."""
    from flashspec.sampling.rejection import rejection_step_onehot

    def step(ids: Any, _: Any, target: Any, generator: Any) -> Any:
        return rejection_step_onehot(ids, target, generator=generator)

    return _by_length(draft, q, p, num_draft, rng, step)


def verify_typical(
    draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Call ``typical_sample``, which its documentation calls lossy, and add its engine's bonus."""
    import torch
    from flashspec.sampling.typical import typical_sample

    def step(ids: Any, draft_laws: Any, target: Any, generator: Any) -> Any:
        g = ids.shape[1]
        kept, first, _ = typical_sample(draft_laws, target[:, :g], ids, g, generator=generator)
        bonus = torch.multinomial(target[:, g].exp(), 1, generator=generator)
        first = first.long()[:, None]
        return torch.cat([first, torch.cat([kept, bonus], dim=1).gather(1, first)], dim=1)

    return _by_length(draft, q, p, num_draft, rng, step)


def _by_length(
    draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator, step: Step
) -> tuple[Array, Array]:
    import torch
    from flashspec.sampling.rejection import rejection_step_onehot

    generator = torch.Generator().manual_seed(int(rng.integers(1 << 63)))
    K = draft.shape[1]
    out, n_out = np.full((len(draft), K + 1), -1, dtype=np.int64), np.zeros_like(num_draft)
    for g in np.unique(num_draft).tolist():
        rows = np.flatnonzero(num_draft == g)
        if g:
            laws = logits(q[rows, :g]), logits(p[rows, : g + 1])
            ids = torch.from_numpy(draft[rows, :g])
            made = step(ids, *laws, generator=generator)
        else:  # its engine's step without a proposal
            none = torch.zeros((len(rows), 1), dtype=torch.int64)
            target = logits(p[rows, :1])
            made = rejection_step_onehot(none, target, none[:, 0], generator=generator)
        accepted, last = made.numpy().T
        out[rows, :K] = np.where(np.arange(K) < accepted[:, None], draft[rows], -1)
        out[rows, accepted] = last
        n_out[rows] = accepted + 1
    return out, n_out
