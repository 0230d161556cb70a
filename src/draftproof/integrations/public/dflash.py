"""dflash: the rejection sampler of its block-diffusion decoder, one row at a time.

Its own draws: ``torch.rand_like`` and ``torch.multinomial``, seeded for each row.
"""

from __future__ import annotations

import numpy as np

from draftproof.integrations.public.tensors import Array, draw, seed_torch

__all__ = ["verify", "verify_indexed"]


def verify(draft: Array, q: Array, p: Array, rng: np.random.Generator) -> list[int]:
    """Call ``dflash.model._rejection_sample`` with draft laws over the whole vocabulary."""
    return _verify(draft, q, p, None, rng)


def verify_indexed(draft: Array, q: Array, p: Array, rng: np.random.Generator) -> list[int]:
    """Call it with each draft law as (ids, probabilities), the most likely id first."""
    order = np.argsort(-q, axis=-1, kind="stable")
    return _verify(draft, np.take_along_axis(q, order, axis=-1), p, order, rng)


def _verify(
    draft: Array, q: Array, p: Array, indices: Array | None, rng: np.random.Generator
) -> list[int]:
    import torch
    from dflash.model import _rejection_sample

    seed_torch(rng)
    if len(draft) == 0:
        return [draw(p[0])]
    accepted, last = _rejection_sample(
        torch.from_numpy(draft)[None],
        torch.from_numpy(p.astype(np.float32))[None],
        torch.from_numpy(q.astype(np.float32))[None],
        None if indices is None else torch.from_numpy(indices)[None],
    )
    return [*draft[:accepted].tolist(), int(last)]
