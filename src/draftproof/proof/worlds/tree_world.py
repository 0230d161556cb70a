"""A world of trees: a world, how many children its nodes get, and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.law import Text
from draftproof.proof.worlds.world import Row, World
from draftproof.trees.draft_tree import Draws

__all__ = ["TREE_WORLDS", "Choose", "TreeWorld", "draw_siblings"]

Choose = Callable[[Sequence[Fraction]], int]
"""Draws from a law: `draftproof.proof.exact.interval.Path.choose`, for one."""


@dataclass(frozen=True)
class TreeWorld:
    """Where trees grow.

    Attributes:
        world: gives the target's and the drafter's rows.
        branching: children of each node, level by level: (2, 1) has 2 + 2 nodes.
        draws: how siblings are drawn.
    """

    world: World
    branching: tuple[int, ...]
    draws: Draws

    @property
    def name(self) -> str:
        """What reports call it."""
        shape = " x ".join(map(str, self.branching))
        return f"{self.world.name}, {shape}, {self.draws.value}"

    @property
    def depth(self) -> int:
        """Drafts of a longest path; a round emits up to one token more."""
        return len(self.branching)

    @cached_property
    def laws(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The draft's and the target's rows by state, each [V, V], in float64."""
        draft, target = (
            np.array(rows, dtype=np.float64) for rows in (self.world.draft, self.world.target)
        )
        return draft, target

    def siblings(self, text: Text, depth: int, choose: Choose) -> Text:
        """Draw the children of a node at a depth (0 for the root), after the text up to it."""
        K = self.branching[depth] if depth < len(self.branching) else 0
        return draw_siblings(self.world.draft[self.world.row(text)], K, self.draws, choose)


def draw_siblings(law: Row, K: int, draws: Draws, choose: Choose) -> Text:
    """Draw up to K siblings from a law; fewer where the law has too few tokens."""
    likeliest = sorted((v for v, q in enumerate(law) if q), key=lambda v: (-law[v], v))
    if draws is Draws.IID:
        return tuple(choose(law) for _ in range(K))
    if draws is Draws.DETERMINISTIC:
        return tuple(likeliest[:K])
    K = min(K, len(likeliest))
    tokens = likeliest[: K - 1] if draws is Draws.TOP_AND_ONE and K else []
    while len(tokens) < K:
        left = sum((q for v, q in enumerate(law) if v not in tokens), Fraction(0))
        tokens.append(choose([Fraction(0) if v in tokens else q / left for v, q in enumerate(law)]))
    return tuple(tokens)


def _tree_worlds() -> dict[str, TreeWorld]:
    shapes = {
        Draws.IID: (("L4", (2,)), ("L357", (3,)), ("toy", (3,)), ("toy", (2, 2)), ("zeros", (2,))),
        Draws.WITHOUT_REPLACEMENT: (
            ("L4", (2,)), ("L357", (3,)), ("toy", (2, 1)), ("L4", (2, 1)), ("zeros", (2, 2)),
        ),
        Draws.DETERMINISTIC: (("L4", (2,)), ("L357", (3,)), ("toy", (1, 2)), ("L4", (2, 2))),
        Draws.TOP_AND_ONE: (("L4", (2,)), ("L357", (3,)), ("toy", (2, 2)), ("L4", (2, 1))),
    }  # fmt: skip
    worlds = [
        TreeWorld(WORLDS[name], branching, draws)
        for draws, pairs in shapes.items()
        for name, branching in pairs
    ]
    return {world.name: world for world in worlds}


TREE_WORLDS: Mapping[str, TreeWorld] = MappingProxyType(_tree_worlds())
"""By name: for each kind of draws a first level, thirds and sevenths, and deeper trees."""
