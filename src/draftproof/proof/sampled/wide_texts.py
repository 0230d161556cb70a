"""Texts of a wide world by draft and verify: short ones, for every row is long."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.sampled.sampling import Verify, streams
from draftproof.proof.worlds.wide import WideWorld, cumulative

__all__ = ["WideTexts"]

Ints = npt.NDArray[np.int64]
NUMBERS = 1 << 21
"""In the p of one call."""


@dataclass
class WideTexts:
    """Texts that grow in number: one round with g = 0 or 1 drafts, completed to g + 1 tokens.

    Text i starts in context i modulo S. Each row of a call is a text of its own.

    Attributes:
        verify: the subject.
        world: where.
        num_draft: g.
        seed: of all draws.
        sampled_law: what drafts are really drawn from, by the declared row; None for that row.
        contexts, tokens: [n, g+1], the context of each token, and the token.
        emitted: how many of them the subject has emitted itself.
    """

    verify: Verify
    world: WideWorld
    num_draft: int
    seed: int
    sampled_law: Callable[[Sequence[Any]], Sequence[Any]] | None = None
    contexts: Ints = field(init=False)
    tokens: Ints = field(init=False)
    emitted: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.contexts = self.tokens = np.empty((0, self.num_draft + 1), dtype=np.int64)
        label = f"wide {self.world.name} {self.num_draft}"
        self._draft_rng, self._subject_rng = streams(self.seed, label)
        self._draft_edges = self.world.edges[1]
        if self.sampled_law is not None and self.num_draft:
            laws = [np.array(self.sampled_law(row.tolist()), float) for row in self.world.tables[1]]
            self._draft_edges = cumulative(np.stack(laws))

    def extend(self, texts: int, deadline: float = np.inf) -> bool:
        """Go on until there are so many texts; False if the time was not enough."""
        rows = max(1, NUMBERS // (self.world.vocabulary * (self.num_draft + 1)))
        while (missing := texts - len(self.tokens)) > 0:
            if time.monotonic() > deadline:
                return False
            contexts, tokens = self._make(min(rows, missing))
            self.contexts = np.concatenate([self.contexts, contexts])
            self.tokens = np.concatenate([self.tokens, tokens])
        return True

    def _make(self, B: int) -> tuple[Ints, Ints]:
        """One call of B rows."""
        world, g = self.world, self.num_draft
        (p, q), target_edges = world.tables, world.edges[0]
        start = (len(self.tokens) + np.arange(B)) % world.contexts
        drafts = self._draw(self._draft_edges, start)[:, None][:, :g]
        states = np.column_stack([start, world.context_after(drafts)])
        token_ids, num_emitted = self.verify(
            drafts, q[states[:, :g]], p[states], np.full(B, g), self._subject_rng
        )
        self.emitted += int(num_emitted.sum())
        contexts, tokens = states.copy(), token_ids.copy()
        if g:
            contexts[:, 1] = world.context_after(tokens[:, 0])
            rest = self._draw(target_edges, contexts[:, 1])
            tokens[:, 1] = np.where(num_emitted > 1, tokens[:, 1], rest)
        return contexts, tokens

    def _draw(self, edges: npt.NDArray[np.float64], contexts: Ints) -> Ints:
        """One token after each context, by the inverse CDF."""
        tokens = np.empty(len(contexts), dtype=np.int64)
        uniforms = self._draft_rng.random(len(contexts))
        for context in np.unique(contexts):
            rows = np.flatnonzero(contexts == context)
            tokens[rows] = np.searchsorted(edges[context], uniforms[rows], side="right")
        return tokens
