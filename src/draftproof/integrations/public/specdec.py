"""specdec: `SpecDecoder.verify`, one row at a time; its target is a table of the row's laws.

Its own draws: ``torch.rand`` and ``torch.multinomial``, seeded for each row.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from draftproof.integrations.public.tensors import Array, draw, logits, seed_torch

__all__ = ["verify"]


def verify(draft: Array, q: Array, p: Array, rng: np.random.Generator) -> list[int]:
    """Call ``verify`` of a decoder that was given no models to load."""
    import torch
    from specdec import SpecDecoder

    seed_torch(rng)
    if len(draft) == 0:
        return [draw(p[0])]
    decoder = object.__new__(SpecDecoder)
    decoder.device = "cpu"
    decoder.big_model = lambda ids: SimpleNamespace(logits=logits(p)[None])
    one_token = torch.zeros((1, 1), dtype=torch.int64)
    laws = list(torch.from_numpy(q.astype(np.float32)).split(1))
    emitted: list[Any] = decoder.verify(one_token, draft.tolist(), laws)
    return emitted
