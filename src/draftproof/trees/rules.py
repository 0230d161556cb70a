"""The rules for trees: what each asks of the siblings' draw, and whether it reads q."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

from draftproof.errors import complaint
from draftproof.lossy import explain
from draftproof.reference import siblings
from draftproof.reference.traversal import traversal
from draftproof.reference.tree import TreeEmission, walk
from draftproof.trees.draft_tree import DraftTree, Draws

__all__ = ["TREE_RULES", "TreeReference", "TreeRule", "check_rule"]


class TreeReference(Protocol):
    """A reference for one row, as `draftproof.reference.traversal.traversal` is."""

    def __call__(
        self,
        tokens: Sequence[int],
        children: Sequence[Sequence[int]],
        q_rows: Sequence[Any],
        p_rows: Sequence[Any],
        accept: Sequence[Any],
        final: Any,
        /,
    ) -> TreeEmission:
        """Verify one tree."""


@dataclass(frozen=True)
class TreeRule:
    """A lossless rule for trees.

    Attributes:
        name: what ``rule=`` calls it.
        verify: its reference.
        draws: the draws of siblings for which it is lossless, those that it is made for first.
        needs_draft_probs: whether it reads q.
    """

    name: str
    verify: TreeReference
    draws: tuple[Draws, ...]
    needs_draft_probs: bool


_ANY = (Draws.DETERMINISTIC, Draws.WITHOUT_REPLACEMENT, Draws.IID, Draws.TOP_AND_ONE)
_IID, _ORDERED = Draws.IID, Draws.WITHOUT_REPLACEMENT

TREE_RULES: Mapping[str, TreeRule] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            TreeRule("nss", partial(walk, siblings.nss), _ANY, False),
            TreeRule("target-only", partial(walk, siblings.target_only), _ANY, False),
            TreeRule("naive-tree", partial(walk, siblings.naive_tree), (_IID, _ORDERED), True),
            TreeRule("rrs", partial(walk, siblings.rrs), (_IID,), True),
            TreeRule("rrsw", partial(walk, siblings.rrsw), (_ORDERED, _IID), True),
            TreeRule("k-seq", partial(walk, siblings.k_seq), (_IID,), True),
            TreeRule("hu-greedy", partial(walk, siblings.hu_greedy), (Draws.TOP_AND_ONE,), True),
            TreeRule("traversal", traversal, (_ORDERED,), True),
        )
    }
)
"""By name."""


def check_rule(rule: str, tree: DraftTree) -> TreeRule:
    """Return the rule, if it is one and fits the tree's siblings.

    Raises:
        ValueError: an unknown rule; siblings for whose draws it is lossy; no draft laws where it
            needs them.
    """
    if rule not in tuple(TREE_RULES):
        raise ValueError(
            explain(rule)
            or complaint(
                "rule",
                "",
                found=repr(rule),
                wanted=f"one of {', '.join(map(repr, TREE_RULES))}",
                fix="choose one of these",
            )
        )
    known = TREE_RULES[rule]
    if tree.draws not in known.draws:
        fitting = [name for name, other in TREE_RULES.items() if tree.draws in other.draws]
        raise ValueError(
            complaint(
                "tree.draws",
                "",
                found=repr(tree.draws.value),
                wanted=f"{' or '.join(repr(d.value) for d in known.draws)}: "
                f"rule {rule!r} is lossy for any other siblings",
                fix=f"choose among {', '.join(map(repr, fitting))}, or draw the siblings so",
            )
        )
    if known.needs_draft_probs and tree.draft_probs is None:
        raise ValueError(
            complaint(
                "tree.draft_probs",
                "",
                found="None",
                wanted=f"the laws [B, N+1, V] that the siblings were drawn from, for rule {rule!r}",
                fix="pass them, or choose 'nss' or 'target-only', which need none",
            )
        )
    return known
