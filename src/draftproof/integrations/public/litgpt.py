"""litgpt: a whole speculative round, drafts included; its models are tables with a cache.

Its own draws: ``torch.rand`` and exponential noise, seeded for each round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from draftproof.integrations.public.tensors import TableModel, draw, seed_torch

__all__ = ["make_round"]


def make_round(world: Any) -> Callable[[Sequence[int], int, np.random.Generator], list[int]]:
    """Wrap ``litgpt.generate.speculative_decoding.speculative_decoding`` at temperature 1."""
    import torch
    from litgpt.generate.speculative_decoding import speculative_decoding

    tables = TableModel(world.draft_row), TableModel(world.target_row)

    def play(context: Sequence[int], k: int, rng: np.random.Generator) -> list[int]:
        seed_torch(rng)
        if k == 0:
            return [draw(np.asarray(world.target_row(context), dtype=np.float64))]
        text = [0, *context]
        models = [_Cached(table, text) for table in tables]
        n = len(text)
        tokens: list[int] = speculative_decoding(
            *models, torch.tensor(text[-1:]), torch.tensor([n - 1]), n, k,
            temperature=1.0, top_k=None, top_p=1.0,
        ).tolist()  # fmt: skip
        return tokens

    return play


class _Cached:
    """A table that remembers the ids it has seen by position, as a key-value cache does."""

    def __init__(self, table: TableModel, text: Sequence[int]) -> None:
        self._table, self._text = table, dict(enumerate(text))

    def __call__(self, idx: Any, input_pos: Any, input_pos_maxp1: int) -> Any:
        import torch

        positions = input_pos.tolist()
        self._text |= dict(zip(positions, idx[0].tolist(), strict=True))
        rows = [self._table.after(tuple(self._text[i] for i in range(1, n + 1))) for n in positions]
        return torch.stack(rows)[None]
