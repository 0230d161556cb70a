"""sequential-speculative-decoding: its three rounds, drafts included; its models are tables.

Its own draws: ``torch.rand`` and ``torch.multinomial``, seeded for each round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from draftproof.integrations.public.tensors import TableModel, draw, seed_torch

__all__ = ["make_capped_round", "make_naive_round", "make_round"]

Round = Callable[[Sequence[int], int, np.random.Generator], list[int]]


def make_round(world: Any) -> Round:
    """Wrap ``standard_speculative_step`` at temperature 1."""
    from seqspecdecod.standard_sd import standard_speculative_step

    return _round(world, standard_speculative_step)


def make_naive_round(world: Any) -> Round:
    """Wrap ``naive_hsd_step``, naive hierarchical verification, at temperature 1."""
    from seqspecdecod.naive_hsd import naive_hsd_step

    return _round(world, naive_hsd_step)


def make_capped_round(world: Any) -> Round:
    """Wrap ``capped_hsd_step``, capped hierarchical verification, at temperature 1."""
    from seqspecdecod.capped_hsd import capped_hsd_step

    return _round(world, capped_hsd_step)


def _round(world: Any, step: Callable[..., Any]) -> Round:
    import torch

    target, drafter = TableModel(world.target_row), TableModel(world.draft_row)

    def play(context: Sequence[int], k: int, rng: np.random.Generator) -> list[int]:
        seed_torch(rng)
        if k == 0:
            return [draw(np.asarray(world.target_row(context), dtype=np.float64))]
        ids, n = torch.tensor([[0, *context]]), len(context)
        text, _, _ = step(
            lambda ids: SimpleNamespace(logits=drafter(ids, n)),
            lambda ids: SimpleNamespace(logits=target(ids, n)),
            ids, k, 1.0, 1.0,
        )  # fmt: skip
        tokens: list[int] = text[0, ids.shape[1] :].tolist()
        return tokens

    return play
