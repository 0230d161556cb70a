"""Verifiers of trees of known worth: wrong ones that must die, right ones that must live.

Each is a subject of the contract ``tree`` by its name, as ``tree-mutant:NAME``; our own rules are
``tree:RULE``.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.loading import SubjectNotFound
from draftproof.proof.subjects.subject import Subject
from draftproof.reference.forest import verify_forest
from draftproof.reference.tree import SiblingRule, TreeEmission, children_of, walk
from draftproof.trees.batch import tree_batch
from draftproof.trees.draft_tree import DraftTree, Draws
from draftproof.trees.rules import TREE_RULES, TreeReference

__all__ = [
    "TREE_GALLERY",
    "TreeMutant",
    "TreeVerifier",
    "load_own",
    "load_tree_mutant",
    "sibling_rule",
    "tree_gallery",
    "tree_rule",
    "tree_table",
]

Array = npt.NDArray[Any]
Kind = Literal["lossy", "rounds", "equivalent"]


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


@dataclass(frozen=True)
class TreeMutant:
    """A verifier of trees of known worth.

    Attributes:
        name: what tables call it.
        does: what it does, in one line.
        build: makes a fresh one.
        draws: how its siblings are drawn.
        world: in `TREE_WORLDS`, where its distance is taken.
        public: the public fault that it stands for; empty if none.
        kind: "lossy": its law is wrong. "rounds": each call is right by itself. "equivalent":
            lossless, must live.
        note: what a verdict may remark about an equivalent.
    """

    name: str
    does: str
    build: Callable[[], TreeVerifier]
    draws: Draws
    world: str
    public: str = ""
    kind: Kind = "lossy"
    note: str = ""

    @property
    def identifier(self) -> str:
        """Its name as an identifier."""
        return re.sub(r"\W+", "_", self.name).strip("_").lower()

    @property
    def spec(self) -> str:
        """How the command line and other processes load it as a subject."""
        return f"tree-mutant:{self.identifier}"

    @property
    def caught_by(self) -> str:
        """The first check that catches it; empty for a right one."""
        return {"lossy": "tree-oracle", "rounds": "tree-calls", "equivalent": ""}[self.kind]

    def to_row(self) -> dict[str, Any]:
        """Describe it as `draftproof.proof.mutants.table` does, in JSON types."""
        return {
            "name": self.name,
            "does": self.does,
            "public": self.public,
            "kind": self.kind,
            "family": "trees",
            "subject_class": "driven",
            "drivable": True,
            "seen": "rounds" if self.kind == "rounds" else "row",
            "caught_by": self.caught_by,
            "first_caught_by": {"driven": self.caught_by or None},
            "world": self.world,
            "total_variation": float(self.total_variation),
            "note": self.note,
            "spec": self.spec,
        }

    @cached_property
    def total_variation(self) -> Fraction:
        """Exact distance of its law from the target's, in its world; 0 within rounding.

        Of one round, and of two for a mutant that is right in each.
        """
        from draftproof.proof.exact.tree_oracle import oracle_tree_law
        from draftproof.proof.worlds.tree_world import TREE_WORLDS

        world, rounds = TREE_WORLDS[self.world], 2 if self.kind == "rounds" else 1
        law = oracle_tree_law(load_tree_mutant(self.name), world, rounds).law
        distance = law.total_variation(world.world.target_law(rounds * (world.depth + 1)))
        return distance if distance > law.error else Fraction(0)


TREE_GALLERY: dict[str, TreeMutant] = {}
"""All that was registered, by name; `tree_gallery` fills it."""


def tree_gallery() -> Mapping[str, TreeMutant]:
    """Return the gallery, by name: the wrong ones first, then the right ones."""
    for family in ("sibling_faults", "tree_faults", "equivalents"):
        importlib.import_module(f"draftproof.proof.trees.{family}")
    return MappingProxyType(TREE_GALLERY)


def tree_table() -> list[dict[str, Any]]:
    """Return what `draftproof mutants` shows of them; computing the distances takes seconds."""
    return [mutant.to_row() for mutant in tree_gallery().values()]


def sibling_rule(name: str, draws: Draws, **about: Any) -> Callable[[SiblingRule], SiblingRule]:
    """Register the rule for siblings below, run from the root down."""

    def register(rule: SiblingRule) -> SiblingRule:
        _add(name, rule.__doc__, partial(TreeVerifier, partial(walk, rule), draws), draws, **about)
        return rule

    return register


def tree_rule(name: str, draws: Draws, **about: Any) -> Callable[[Any], Any]:
    """Register the rule for trees, or the class of verifiers, below."""

    def register(rule: Any) -> Any:
        build = rule if isinstance(rule, type) else partial(TreeVerifier, rule, draws)
        _add(name, rule.__doc__, build, draws, **about)
        return rule

    return register


def _add(
    name: str, doc: str | None, build: Any, draws: Draws, *, world: str = "", **about: Any
) -> None:
    if name in TREE_GALLERY:
        raise ValueError(f"mutant: found {name!r} twice; names are unique.")
    does = (doc or "").partition("\n")[0].rstrip(".")
    where = world or f"L4, 2, {draws.value}"
    TREE_GALLERY[name] = TreeMutant(name, does, build, draws, where, **about)


def load_tree_mutant(name: str) -> Subject:
    """Make a subject of a verifier in the gallery, by its name or identifier."""
    for mutant in tree_gallery().values():
        if name in (mutant.name, mutant.identifier):
            return Subject(mutant.spec, Contract.TREE, mutant.build(), mutant.spec)
    raise SubjectNotFound(
        f"subject: found 'tree-mutant:{name}'; wanted tree-mutant: and one of "
        f"{', '.join(mutant.identifier for mutant in tree_gallery().values())}."
    )


class _Own:
    """The reference behind `draftproof.verify_tree`, for siblings as the rule likes them best.

    The public call takes numbers for uniforms; this takes what the judge's instruments hand out.
    """

    def __init__(self, rule: str) -> None:
        self.rule, self.draws = TREE_RULES[rule], TREE_RULES[rule].draws[0]

    def __call__(
        self, token_ids: Array, parents: Array, q: Array, p: Array, rng: np.random.Generator
    ) -> list[int]:
        batch = tree_batch(DraftTree(token_ids[None], parents[None], q[None], self.draws), p[None])
        accept, final = rng.random((1, len(token_ids))), rng.random(1)
        _, tokens, num_emitted, _ = verify_forest(
            batch, self.rule, accept, final, validate="touched"
        )
        emitted: list[int] = tokens[0, : num_emitted[0]].tolist()
        return emitted


def load_own(rule: str) -> Subject:
    """Make a subject of our own rule, see `draftproof.trees.TREE_RULES`."""
    if rule not in TREE_RULES:
        raise SubjectNotFound(
            f"subject: found 'tree:{rule}'; wanted tree: and one of {', '.join(TREE_RULES)}."
        )
    spec = f"tree:{rule}"
    return Subject(f"draftproof.verify_tree, {rule}", Contract.TREE, _Own(rule), spec)
