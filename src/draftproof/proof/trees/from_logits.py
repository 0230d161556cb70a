"""Verifiers of trees from logits: our own, and wrong ones that must die.

Each is a subject of the contract ``tree-logits`` by its name: ``tree-logits:RULE`` or
``tree-logits-mutant:NAME``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.logits.params import SamplingParams
from draftproof.logits.verify_tree import tree_logits_batch
from draftproof.proof.checks import CHECKS
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.loading import SubjectNotFound
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.examination import examine
from draftproof.proof.trial.matrix import FATAL, Matrix, judge_in_turn
from draftproof.proof.trial.plan import Plan, make_plan
from draftproof.proof.worlds.logits_world import law_at
from draftproof.reference.forest import verify_forest
from draftproof.reference.siblings import rrsw
from draftproof.reference.tree import children_of, walk
from draftproof.trees.draft_tree import DraftTree, Draws
from draftproof.trees.rules import TREE_RULES

__all__ = [
    "FROM_LOGITS",
    "LogitsTreeVerifier",
    "judge_trees_from_logits",
    "load_mutant",
    "load_own",
]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


class LogitsTreeVerifier:
    """Right, in steps that a wrong one replaces: `rrsw` down the tree, each row behind its path."""

    draws = Draws.WITHOUT_REPLACEMENT
    name, kind = "rrsw", "lossy"

    def __call__(
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
        tokens, children = token_ids.tolist(), children_of(parents.tolist())
        accept, final = list(rng.random(len(tokens))), rng.random()
        texts = [self._path(tokens, parents.tolist(), c) for c in range(len(children))]
        p = [
            self._law(target_logits[c], params, [*history, *text], c, bool(children[c]))
            for c, text in enumerate(texts)
        ]
        q = [
            law_at(draft_logits[c], draft_params, [*history, *text], c) if children[c] else None
            for c, text in enumerate(texts)
        ]
        emitted = walk(rrsw, tokens, children, q, p, accept, final)  # type: ignore[arg-type]
        assert emitted.last_token is not None, "laws of a world have mass"
        return [*(tokens[node] for node in emitted.path), emitted.last_token]

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


FROM_LOGITS: dict[str, type[LogitsTreeVerifier]] = {}
"""The wrong ones, by name."""


def _wrong(name: str) -> Callable[[type[LogitsTreeVerifier]], type[LogitsTreeVerifier]]:
    def register(build: type[LogitsTreeVerifier]) -> type[LogitsTreeVerifier]:
        build.name = name
        FROM_LOGITS[name] = build
        return build

    return register


@_wrong("the sibling's text")
class SiblingsText(LogitsTreeVerifier):
    """Puts every node behind the first child of the root."""

    def _path(self, tokens: Sequence[int], parents: Sequence[int], context: int) -> list[int]:
        path = super()._path(tokens, parents, context)
        return [tokens[0], *path[1:]]


@_wrong("the text before the tree")
class NoPath(LogitsTreeVerifier):
    """Sees no node at all."""

    def _path(self, tokens: Sequence[int], parents: Sequence[int], context: int) -> list[int]:
        return []


@_wrong("every node counts")
class EveryNode(LogitsTreeVerifier):
    """Penalises the tokens of all nodes up to its own, on its path or not."""

    def _path(self, tokens: Sequence[int], parents: Sequence[int], context: int) -> list[int]:
        return list(tokens[:context])


@_wrong("raw at the leaves")
class RawLeaves(LogitsTreeVerifier):
    """Draws behind a leaf from the softmax of the logits."""

    def _law(
        self, logits: Floats, params: SamplingParams, text: list[int], context: int, inner: bool
    ) -> Floats:
        return law_at(logits, params if inner else SamplingParams(), text if inner else [], context)


@_wrong("the mask of the root")
class MaskOfTheRoot(LogitsTreeVerifier):
    """Keeps the root's mask at every node."""

    def _law(
        self, logits: Floats, params: SamplingParams, text: list[int], context: int, inner: bool
    ) -> Floats:
        return law_at(logits, params, text, 0)


@_wrong("ends by number")
class EndsByNumber(LogitsTreeVerifier):
    """Takes a node's number for the length of its text."""

    def _law(
        self, logits: Floats, params: SamplingParams, text: list[int], context: int, inner: bool
    ) -> Floats:
        early = max(0, params.min_tokens - max(0, context - 1))
        return law_at(logits, replace(params, min_tokens=early), text, context)


class _Own:
    """The reference behind `draftproof.verify_tree_logits`, on what the instruments hand out."""

    def __init__(self, rule: str) -> None:
        self.rule, self.draws = TREE_RULES[rule], TREE_RULES[rule].draws[0]

    def __call__(
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
        tree = DraftTree(token_ids[None], parents[None], None, self.draws)
        batch = tree_logits_batch(
            tree, target_logits[None], draft_logits[None], params, draft_params, [history],
            None, None, None, None, definition=False,
        )  # fmt: skip
        accept, final = rng.random((1, len(token_ids))), rng.random(1)
        _, tokens, num_emitted, _ = verify_forest(
            batch, self.rule, accept, final, validate="touched"
        )
        emitted: list[int] = tokens[0, : num_emitted[0]].tolist()
        return emitted


def load_own(rule: str) -> Subject:
    """Make a subject of our own rule, see `draftproof.trees.TREE_RULES`."""
    if rule not in TREE_RULES:
        known = ", ".join(TREE_RULES)
        raise SubjectNotFound(
            f"subject: found 'tree-logits:{rule}'; wanted tree-logits: and one of {known}."
        )
    title, spec = f"draftproof.verify_tree_logits, {rule}", f"tree-logits:{rule}"
    return Subject(title, Contract.TREE_LOGITS, _Own(rule), spec)


def load_mutant(name: str) -> Subject:
    """Make a subject of a wrong one, by its name or identifier."""
    for identifier, build in _by_identifier().items():
        if name in (identifier, *(n for n, b in FROM_LOGITS.items() if b is build)):
            spec = f"tree-logits-mutant:{identifier}"
            return Subject(spec, Contract.TREE_LOGITS, build(), spec)
    raise SubjectNotFound(
        f"subject: found 'tree-logits-mutant:{name}'; wanted tree-logits-mutant: and one of "
        f"{', '.join(_by_identifier())}."
    )


def _by_identifier() -> Mapping[str, type[LogitsTreeVerifier]]:
    named = {re.sub(r"\W+", "_", name).lower(): build for name, build in FROM_LOGITS.items()}
    return MappingProxyType(named)


def judge_trees_from_logits(
    plan: Plan, on_progress: Callable[[int, int, str], object] | None = None
) -> Matrix:
    """Judge the wrong ones by exact evidence, one after the other."""
    quick = make_plan("quick", plan.seed, plan.timeout)

    def killers(name: str) -> tuple[str, ...]:
        findings = examine("tree-oracle", CHECKS["tree-oracle"], load_mutant(name), quick)
        return ("tree-oracle",) if any(f.outcome in FATAL for f in findings) else ()

    return judge_in_turn([build() for build in FROM_LOGITS.values()], killers, on_progress)
