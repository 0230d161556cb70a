"""The target and the drafter of a world, as a decoder meets them: rows for a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from draftproof.proof.worlds.world import World

__all__ = ["Models", "Scenery"]

Array = npt.NDArray[np.float64]


class Scenery(Protocol):
    """A world of any size: rows of float64, and which of them governs the next token."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def start(self) -> int:
        """The token that its prompts end with."""

    @property
    def vocabulary(self) -> int:
        """V, the number of tokens."""

    @property
    def tables(self) -> tuple[Array, Array]:
        """The rows of the target and of the drafter, [S, V] each."""

    def row(self, context: Sequence[int]) -> int:
        """Which row governs the token after this text."""


class Models:
    """What a decoder is made with: two models over one vocabulary.

    Attributes:
        vocabulary: V, the number of tokens.
        eos: the token behind which nothing is written; None if there is none.

    >>> from draftproof.proof.worlds.catalogue import WORLDS
    >>> models = Models(WORLDS["toy"])
    >>> models.target_row([0, 1]).round(3).tolist(), models.draft_row([0, 1]).round(3).tolist()
    ([0.333, 0.667], [0.667, 0.333])
    """

    def __init__(self, world: Scenery | World, eos: int | None = None) -> None:
        self._world = world
        self._target, self._draft = world.tables
        self.vocabulary, self.eos = world.vocabulary, eos

    def target_row(self, context: Sequence[int]) -> Array:
        """The target's law of the next token, [V] in float64, after all tokens so far."""
        return np.array(self._target[self._world.row(self._checked(context))])

    def draft_row(self, context: Sequence[int]) -> Array:
        """The drafter's law of the next token, [V] in float64, after all tokens so far."""
        return np.array(self._draft[self._world.row(self._checked(context))])

    def _checked(self, context: Sequence[int]) -> Sequence[Any]:
        if len(context) and not 0 <= int(context[-1]) < self.vocabulary:
            raise ValueError(
                f"context: its last token is {context[-1]}; wanted one in 0..{self.vocabulary - 1}."
            )
        return context
