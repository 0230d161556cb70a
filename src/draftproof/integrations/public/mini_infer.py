"""mini-infer: a whole speculative round, drafts included; its models are tables.

Its own draws: ``torch.rand`` and ``torch.multinomial``, seeded for each round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from draftproof.integrations.public.tensors import TableModel, seed_torch

__all__ = ["make_round"]


def make_round(world: Any) -> Callable[[Sequence[int], int, np.random.Generator], list[int]]:
    """Wrap ``mini_infer.speculative.verifier.speculative_step`` at temperature 1."""
    import torch
    from mini_infer.speculative.verifier import speculative_step

    target, drafter = TableModel(world.target_row), TableModel(world.draft_row)

    def play(context: Sequence[int], k: int, rng: np.random.Generator) -> list[int]:
        seed_torch(rng)
        n = len(context)
        tokens: list[int]
        tokens, _ = speculative_step(
            lambda ids: (target(ids, n), None),
            lambda ids: (drafter(ids, n), None),
            torch.tensor([[0, *context]]), k, 1.0,
        )  # fmt: skip
        return tokens

    return play
