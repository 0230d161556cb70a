"""transformers: the acceptance rule of its assisted decoding, one row at a time.

Its own draws: ``torch.rand_like`` and ``torch.multinomial``, seeded for each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from draftproof.integrations.public.tensors import Array, draw, logits, seed_torch

__all__ = ["verify"]


def verify(draft: Array, q: Array, p: Array, rng: np.random.Generator) -> list[int]:
    """Call ``transformers.generation.utils._speculative_sampling`` on logits in float32."""
    import torch
    from transformers.generation.utils import _speculative_sampling

    seed_torch(rng)
    g = len(draft)
    if g == 0:
        return [draw(p[0])]
    ids = torch.from_numpy(draft)[None]
    tokens, _ = _speculative_sampling(ids, logits(q)[None], g, logits(p)[None])
    emitted: list[Any] = tokens[0].tolist()
    return emitted
