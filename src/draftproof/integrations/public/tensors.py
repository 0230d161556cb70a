"""What adapters of PyTorch code share: a seed, laws as logits, and models that are tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["TableModel", "draw", "logits", "seed_torch"]

Array = npt.NDArray[Any]
Row = Callable[[Sequence[int]], Any]
"""The law of the token after a context."""
MOST_CONTEXTS = 4_096
"""Whose logits a model remembers."""


def seed_torch(rng: np.random.Generator) -> None:
    """Seed PyTorch's global generator of the CPU with 63 bits of the judge's.

    As ``torch.manual_seed`` does, which looks after every other device too, for 0.2 ms.
    """
    import torch

    torch.default_generator.manual_seed(int(rng.integers(1 << 63)))


def logits(laws: Array) -> Any:
    """Return the logarithms of laws as a float32 tensor; -inf where a token has no mass."""
    import torch

    with np.errstate(divide="ignore"):
        return torch.from_numpy(np.log(laws).astype(np.float32))


def draw(law: Array) -> int:
    """Sample one token: for rows without drafts, which a library's verifier does not meet."""
    import torch

    return int(torch.multinomial(torch.from_numpy(law.astype(np.float32)), 1))


class TableModel:
    """A causal model whose logits are those of a world, exact up to float32.

    Texts are preceded by one token of any kind, which stands for the empty context: libraries
    do not decode from nothing.

    Args:
        row: the law after a context.

    Attributes:
        after: (context) -> its logits [V].
    """

    def __init__(self, row: Row) -> None:
        @lru_cache(MOST_CONTEXTS)
        def after(context: tuple[int, ...]) -> Any:
            return logits(np.asarray(row(context), dtype=np.float64))

        self.after = after

    def __call__(self, ids: Any, first: int = 0) -> Any:
        """Return logits [1, n, V] for ids [1, n]: position i predicts the id after it.

        Those before ``first``, which nobody has a use for, are NaN.
        """
        import torch

        text = tuple(ids[0].tolist())
        rows = [self.after(text[1 : i + 1]) for i in range(first, len(text))]
        unused = torch.full((first, len(rows[0])), torch.nan)
        return torch.cat([unused, torch.stack(rows)])[None]
