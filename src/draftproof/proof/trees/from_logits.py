"""Verifiers of trees from logits of known worth: wrong in one step each, or right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from draftproof.logits.params import SamplingParams
from draftproof.proof.trees.gallery import logits_verifier
from draftproof.proof.trees.skeleton import Floats, LogitsTreeVerifier
from draftproof.proof.worlds.logits_world import law_at
from draftproof.reference.traversal import traversal


@logits_verifier("the sibling's text", "penalties")
class SiblingsText(LogitsTreeVerifier):
    """Puts every node behind the first child of the root."""

    def _path(self, tokens: Sequence[int], parents: Sequence[int], context: int) -> list[int]:
        path = super()._path(tokens, parents, context)
        return [tokens[0], *path[1:]]


@logits_verifier("the text before the tree", "penalties")
class NoPath(LogitsTreeVerifier):
    """Sees no node at all."""

    def _path(self, tokens: Sequence[int], parents: Sequence[int], context: int) -> list[int]:
        return []


@logits_verifier("every node counts", "penalties")
class EveryNode(LogitsTreeVerifier):
    """Penalises the tokens of all nodes up to its own, on its path or not."""

    def _path(self, tokens: Sequence[int], parents: Sequence[int], context: int) -> list[int]:
        return list(tokens[:context])


@logits_verifier("raw at the leaves", "top-k, top-p")
class RawLeaves(LogitsTreeVerifier):
    """Draws behind a leaf from the softmax of the logits."""

    def _law(
        self, logits: Floats, params: SamplingParams, text: list[int], context: int, inner: bool
    ) -> Floats:
        return law_at(logits, params if inner else SamplingParams(), text if inner else [], context)


@logits_verifier("the mask of the root", "grammar")
class MaskOfTheRoot(LogitsTreeVerifier):
    """Keeps the root's mask at every node."""

    def _law(
        self, logits: Floats, params: SamplingParams, text: list[int], context: int, inner: bool
    ) -> Floats:
        return law_at(logits, params, text, 0)


@logits_verifier("ends by number", "ends")
class EndsByNumber(LogitsTreeVerifier):
    """Takes a node's number for the length of its text."""

    def _law(
        self, logits: Floats, params: SamplingParams, text: list[int], context: int, inner: bool
    ) -> Floats:
        early = max(0, params.min_tokens - max(0, context - 1))
        return law_at(logits, replace(params, min_tokens=early), text, context)


class _Remembering(LogitsTreeVerifier):
    """Keeps tokens from one call to the next, as long as the generator is the same."""

    rng: np.random.Generator | None = None
    kept: Sequence[int] = ()

    def __call__(self, *call: Any) -> list[int]:
        """Return the tokens of the accepted path and the one after them."""
        token_ids, *given, history, rng = call
        if rng is not self.rng:
            self.rng, self.kept = rng, ()
        call = (token_ids, *given, self._output(history), rng)
        emitted = super().__call__(*call)
        self.kept = self._keep(token_ids.tolist(), history, emitted)
        return emitted

    def _output(self, history: list[int]) -> list[int]:
        """What this call looks back at."""
        return [*self.kept, *history]

    def _keep(self, drafts: list[int], history: list[int], emitted: list[int]) -> Sequence[int]:
        """What the next call gets."""
        raise NotImplementedError


@logits_verifier("the history of the first call", "two rounds", kind="rounds")
class FirstHistory(_Remembering):
    """Looks back at the history of its first call in every later one."""

    def _output(self, history: list[int]) -> list[int]:
        return list(self.kept or history)

    def _keep(self, drafts: list[int], history: list[int], emitted: list[int]) -> Sequence[int]:
        return self.kept or history


@logits_verifier("rejected siblings stay counted", "two rounds", kind="rounds")
class RejectedStay(_Remembering):
    """Penalises tokens of earlier trees that were not emitted."""

    def _keep(self, drafts: list[int], history: list[int], emitted: list[int]) -> Sequence[int]:
        return [*self.kept, *(token for token in drafts if token not in emitted)]


@logits_verifier("emitted tokens counted twice", "two rounds", kind="rounds")
class CountedTwice(_Remembering):
    """Adds what it has emitted to a history that holds it already."""

    def _keep(self, drafts: list[int], history: list[int], emitted: list[int]) -> Sequence[int]:
        return [*self.kept, *emitted]


@logits_verifier("last noise kept between calls", "two rounds", kind="rounds")
class KeptNoise(LogitsTreeVerifier):
    """Draws the last token of every call by the uniform of the first."""

    rng: np.random.Generator | None = None
    kept: Any = None

    def uniforms(self, nodes: int, rng: np.random.Generator) -> tuple[Sequence[Any], Any]:
        """Those of the nodes, and the first call's last one."""
        accept, final = super().uniforms(nodes, rng)
        if rng is not self.rng:
            self.rng, self.kept = rng, final
        return accept, self.kept


logits_verifier("rrsw", "penalties", kind="equivalent")(LogitsTreeVerifier)


@logits_verifier("traversal", "penalties", kind="equivalent")
class Traversal(LogitsTreeVerifier):
    """Judges from the leaves up."""

    def __init__(self) -> None:
        super().__init__(traversal)


@logits_verifier("a history of its own", "two rounds", kind="equivalent")
class OwnHistory(_Remembering):
    """Adds what it emits to the history that it has kept, and is told it for nothing."""

    def _output(self, history: list[int]) -> list[int]:
        return list(self.kept or history)

    def _keep(self, drafts: list[int], history: list[int], emitted: list[int]) -> Sequence[int]:
        return [*(self.kept or history), *emitted]
