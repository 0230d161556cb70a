"""Right verifiers of one tree, in steps that a wrong one replaces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.logits.params import SamplingParams
from draftproof.proof.worlds.logits_world import law_at
from draftproof.reference.siblings import rrsw
from draftproof.reference.tree import TreeEmission, children_of, walk
from draftproof.trees.draft_tree import Draws
from draftproof.trees.rules import TreeReference

__all__ = ["LogitsTreeVerifier", "TreeVerifier"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
NODE_BY_NODE: TreeReference = partial(walk, rrsw)


class TreeVerifier:
    """A reference for one tree, in the contract ``tree``: uniforms by node, then the last one."""

    def __init__(self, rule: TreeReference, draws: Draws) -> None:
        self.rule, self.draws = rule, draws

    def __call__(
        self, token_ids: Array, parents: Array, q: Array, p: Array, rng: np.random.Generator
    ) -> list[int]:
        """Return the tokens of the accepted path and the one after them."""
        tokens = token_ids.tolist()
        accept, final = self.uniforms(len(tokens), rng)
        emitted = self.rule(tokens, children_of(parents.tolist()), list(q), list(p), accept, final)
        return self.emit(tokens, emitted)

    def uniforms(self, nodes: int, rng: np.random.Generator) -> tuple[Sequence[Any], Any]:
        """One for each node, and one for the last draw."""
        return list(rng.random(nodes)), rng.random()

    def emit(self, tokens: list[int], emitted: TreeEmission) -> list[int]:
        """The accepted path's tokens, and the last one."""
        assert emitted.last_token is not None, "laws of a world have mass"
        return [*(tokens[node] for node in emitted.path), emitted.last_token]


class LogitsTreeVerifier(TreeVerifier):
    """Node by node from logits, in the contract ``tree-logits``, each row behind its path."""

    def __init__(
        self,
        rule: TreeReference = NODE_BY_NODE,
        draws: Draws = Draws.WITHOUT_REPLACEMENT,
    ) -> None:
        super().__init__(rule, draws)

    def __call__(  # type: ignore[override]
        self,
        token_ids: Array,
        parents: Array,
        draft_logits: Array,
        target_logits: Array,
        params: SamplingParams,
        draft_params: SamplingParams,
        history: list[int],
        rng: np.random.Generator,
    ) -> list[int]:
        """Return the tokens of the accepted path and the one after them."""
        tokens, above = token_ids.tolist(), parents.tolist()
        q, p = np.full(draft_logits.shape, np.nan), np.empty(target_logits.shape)
        for context in range(len(p)):
            text, inner = [*history, *self._path(tokens, above, context)], context - 1 in above
            p[context] = self._law(target_logits[context], params, text, context, inner)
            if inner:
                q[context] = law_at(draft_logits[context], draft_params, text, context)
        return super().__call__(token_ids, parents, q, p, rng)

    def _path(self, tokens: Sequence[int], parents: Sequence[int], context: int) -> list[int]:
        """The tokens from the root's child down to the node of a context."""
        if context == 0:
            return []
        above = self._path(tokens, parents, parents[context - 1] + 1)
        return [*above, tokens[context - 1]]

    def _law(
        self, logits: Floats, params: SamplingParams, text: list[int], context: int, inner: bool
    ) -> Floats:
        """The target's law behind a text."""
        return law_at(logits, params, text, context)
