"""Verifiers of trees of known worth: wrong ones that must die, right ones that must live.

Each is a subject by its name: of the contract ``tree`` as ``tree-mutant:NAME``, of ``tree-logits``
as ``tree-logits-mutant:NAME``.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.loading import SubjectNotFound
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trees.skeleton import LogitsTreeVerifier, TreeVerifier
from draftproof.reference.tree import SiblingRule, walk
from draftproof.trees.draft_tree import Draws

if TYPE_CHECKING:
    from draftproof.proof.worlds.tree_world import TreeWorld

__all__ = [
    "TreeMutant",
    "load_tree_mutant",
    "logits_verifier",
    "sibling_rule",
    "tree_gallery",
    "tree_rule",
    "tree_table",
]

Kind = Literal["lossy", "rounds", "equivalent"]


@dataclass(frozen=True)
class TreeMutant:
    """A verifier of trees of known worth.

    Attributes:
        name: what tables call it.
        does: what it does, in one line.
        build: makes a fresh one.
        draws: how its siblings are drawn.
        world: where its distance is taken: in `TREE_WORLDS`, or in `LOGITS_WORLDS` for two
            siblings.
        public: the public fault that it stands for; empty if none.
        kind: "lossy": its law is wrong. "rounds": each call is right by itself. "equivalent":
            lossless, must live.
        note: what a verdict may remark about an equivalent.
        contract: what it is given.
    """

    name: str
    does: str
    build: Callable[[], TreeVerifier]
    draws: Draws
    world: str
    public: str = ""
    kind: Kind = "lossy"
    note: str = ""
    contract: Contract = Contract.TREE

    @property
    def identifier(self) -> str:
        """Its name as an identifier."""
        return re.sub(r"\W+", "_", self.name).strip("_").lower()

    @property
    def spec(self) -> str:
        """How the command line and other processes load it as a subject."""
        return f"{self.contract}-mutant:{self.identifier}"

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
            "family": "trees" if self.contract is Contract.TREE else "trees from logits",
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
        from draftproof.proof.exact.tree_oracle import oracle_tree_law, text_length

        subject = load_tree_mutant(self.name, self.contract)
        worlds = self._rounds if self.kind == "rounds" else self._rounds[:1]
        law = oracle_tree_law(subject, *worlds).law
        distance = law.total_variation(worlds[0].world.target_law(text_length(subject, worlds)))
        return distance if distance > law.error else Fraction(0)

    @property
    def _rounds(self) -> tuple[TreeWorld, TreeWorld]:
        """Where the trees of two calls grow."""
        from draftproof.proof.worlds.logits_world import logits_world
        from draftproof.proof.worlds.tree_world import TREE_WORLDS, TreeWorld

        if self.contract is Contract.TREE:
            return TREE_WORLDS[self.world], TREE_WORLDS[self.world]
        first = TreeWorld(logits_world(self.world), (2,), self.draws)
        return first, replace(first, branching=(1,))


_GALLERIES: dict[Contract, dict[str, TreeMutant]] = {Contract.TREE: {}, Contract.TREE_LOGITS: {}}
"""All that was registered, by contract and name; `tree_gallery` fills it."""


def tree_gallery(contract: Contract = Contract.TREE) -> Mapping[str, TreeMutant]:
    """Return a contract's gallery, by name: the wrong ones first, then the right ones."""
    for family in ("sibling_faults", "tree_faults", "equivalents", "from_logits"):
        importlib.import_module(f"draftproof.proof.trees.{family}")
    return MappingProxyType(_GALLERIES[contract])


def tree_table() -> list[dict[str, Any]]:
    """Return what `draftproof mutants` shows of them; computing the distances takes seconds."""
    return [mutant.to_row() for kind in _GALLERIES for mutant in tree_gallery(kind).values()]


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


def logits_verifier(name: str, world: str, **about: Any) -> Callable[[Any], Any]:
    """Register the class of verifiers from logits below, and the world in which it is seen best."""

    def register(build: type[LogitsTreeVerifier]) -> type[LogitsTreeVerifier]:
        about["contract"] = Contract.TREE_LOGITS
        _add(name, build.__doc__, build, build().draws, world=world, **about)
        return build

    return register


def _add(
    name: str, doc: str | None, build: Any, draws: Draws, *, world: str = "", **about: Any
) -> None:
    does = (doc or "").partition("\n")[0].rstrip(".")
    mutant = TreeMutant(name, does, build, draws, world or f"L4, 2, {draws.value}", **about)
    gallery = _GALLERIES[mutant.contract]
    if name in gallery:
        raise ValueError(f"mutant: found {name!r} twice; names are unique.")
    gallery[name] = mutant


def load_tree_mutant(name: str, contract: Contract = Contract.TREE) -> Subject:
    """Make a subject of a verifier in a contract's gallery, by its name or identifier."""
    gallery = tree_gallery(contract)
    for mutant in gallery.values():
        if name in (mutant.name, mutant.identifier):
            return Subject(mutant.spec, contract, mutant.build(), mutant.spec)
    raise SubjectNotFound(
        f"subject: found '{contract}-mutant:{name}'; wanted {contract}-mutant: and one of "
        f"{', '.join(mutant.identifier for mutant in gallery.values())}."
    )
