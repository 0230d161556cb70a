"""Verification of one row's tree of drafts: from the root down, by a rule for siblings.

Contexts of a tree are its root and its nodes, in that order: row 0 of P and Q belongs to the root,
row n + 1 to node n. P[c] is the target's law after context c, Q[c] the law from which c's children
were drawn. Inputs are trusted: the public functions validate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from draftproof.reference.draw import best_token
from draftproof.reference.siblings.choice import Choice, Row

__all__ = ["ROOT", "SiblingRule", "TreeEmission", "children_of", "greedy", "walk"]

ROOT = -1
SiblingRule = Callable[[Sequence[int], Any, Row, Sequence[Any], Any], Choice]


class TreeEmission(NamedTuple):
    """What one row emits: the tokens of the nodes of ``path``, then ``last_token``.

    ``last_token`` is None if the row cannot be decided. ``zero_residual`` says that a rejection met
    a residual without mass, so that a token came from p.
    """

    path: list[int]
    last_token: int | None
    zero_residual: bool = False


def children_of(parents: Sequence[int], order: Sequence[int] | None = None) -> list[list[int]]:
    """Return the children of each context (the root first), in draw order.

    Args:
        parents: a node before it, or -1 for a child of the root.
        order: siblings are sorted by it; by their numbers if it is left out.
    """
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for node in (
        range(len(parents)) if order is None else sorted(range(len(parents)), key=order.__getitem__)
    ):
        children[parents[node] + 1].append(node)
    return children


def walk(
    rule: SiblingRule,
    tokens: Sequence[int],
    children: Sequence[Sequence[int]],
    q_rows: Sequence[Row],
    p_rows: Sequence[Row],
    accept: Sequence[Any],
    final: Any,
) -> TreeEmission:
    """Run the rule at the root; where it enters a child, run it there; it stops with a token.

    Args:
        rule: see `draftproof.reference.siblings`.
        tokens: one for each node.
        children: of each context, see `children_of`.
        q_rows: [V] for each context; those without children are not read.
        p_rows: [V] for each context; those off the path are not read.
        accept: a uniform for each node.
        final: one for the last draw.
    """
    path: list[int] = []
    context, is_zero = ROOT, False
    while True:
        nodes = children[context + 1]
        siblings, coins = [tokens[n] for n in nodes], [accept[n] for n in nodes]
        q = q_rows[context + 1] if nodes else None
        choice = rule(siblings, q, p_rows[context + 1], coins, final)
        is_zero |= choice.zero_residual
        if choice.sibling is None:
            return TreeEmission(path, choice.token, is_zero)
        context = nodes[choice.sibling]
        path.append(context)


def greedy(
    tokens: Sequence[int], children: Sequence[Sequence[int]], p_rows: Sequence[Row]
) -> TreeEmission:
    """Temperature 0: follow the argmax down the tree, and emit it where no child has it."""
    path: list[int] = []
    context = ROOT
    while True:
        best = best_token(p_rows[context + 1])
        hits = [n for n in children[context + 1] if tokens[n] == best]
        if not hits:
            return TreeEmission(path, best)
        context = hits[0]
        path.append(context)
