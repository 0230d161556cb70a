"""Rules for whole trees that are wrong, and noise that outlives its call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from draftproof.proof.trees.gallery import tree_rule
from draftproof.proof.trees.skeleton import TreeVerifier
from draftproof.reference.block import weight_after
from draftproof.reference.chain import residual
from draftproof.reference.draw import inverse_cdf, mass
from draftproof.reference.siblings import rrsw
from draftproof.reference.siblings.choice import Row, normalised, without
from draftproof.reference.tree import ROOT, TreeEmission, walk
from draftproof.trees.draft_tree import Draws

ORDERED = Draws.WITHOUT_REPLACEMENT
DEEP = f"L4, 2 x 1, {ORDERED.value}"


def faulty_traversal(
    tokens: Sequence[int],
    children: Sequence[Sequence[int]],
    q_rows: Sequence[Row],
    p_rows: Sequence[Row],
    accept: Sequence[Any],
    final: Any,
    *,
    target: bool = True,
    draft: bool = True,
    weight: bool = True,
    cap: bool = True,
    bonus: int = 0,
) -> TreeEmission:
    """Traversal verification, with steps that can be left out.

    Args:
        tokens, children, q_rows, p_rows, accept, final: see `draftproof.reference.traversal`.
        target, draft, weight: whether a deleted leaf changes its parent's p, q and w.
        cap: whether w stays at most 1 on the way down.
        bonus: rows by which the law of the last token is off, at a leaf of the whole tree.
    """
    p, q, waiting = list(p_rows), list(q_rows), [list(nodes) for nodes in children]
    path: list[int] = []
    w: list[Any] = [1]
    context = ROOT
    while True:
        while waiting[context + 1]:
            node = waiting[context + 1].pop(0)
            p_x, q_x = p[context + 1][tokens[node]], q[context + 1][tokens[node]]
            w.append(weight_after(w[-1], p_x, q_x) if cap else w[-1] * p_x / q_x)
            path.append(node)
            context = node
        if not path or accept[context] < w[-1]:
            at = context + 1 - bonus if not children[context + 1] else context + 1
            return TreeEmission(path, inverse_cdf(p[at], final))
        x = tokens[path.pop()]
        context = path[-1] if path else ROOT
        w.pop()
        rest = residual(w[-1] * p[context + 1], q[context + 1])
        S = mass(rest)
        if target and S > 0:
            p[context + 1] = rest / S
        if draft:
            q[context + 1] = normalised(without(q[context + 1], x))
        if weight and w[-1] < 1:
            w[-1] = S / (S + (1 - w[-1]))


@tree_rule("traversal, p not updated", ORDERED, world=DEEP)
def traversal_keeps_p(*call: Any) -> TreeEmission:
    """Leaves the parent's target as it was when its leaf is deleted."""
    return faulty_traversal(*call, target=False)


@tree_rule("traversal, q not updated", ORDERED, world=DEEP)
def traversal_keeps_q(*call: Any) -> TreeEmission:
    """Leaves a deleted leaf in the law of its siblings."""
    return faulty_traversal(*call, draft=False)


@tree_rule("traversal, w not updated", ORDERED, world=DEEP)
def traversal_keeps_w(*call: Any) -> TreeEmission:
    """Leaves the parent's weight as it was when its leaf is deleted."""
    return faulty_traversal(*call, weight=False)


@tree_rule("traversal, uncapped", ORDERED, world=DEEP)
def traversal_uncapped(*call: Any) -> TreeEmission:
    """Lets a weight exceed 1 on its way down."""
    return faulty_traversal(*call, cap=False)


@tree_rule("bonus from the row before", ORDERED, world=DEEP)
def bonus_before(*call: Any) -> TreeEmission:
    """Draws at a leaf from the row before the leaf's, as slots without the root would have it."""
    return faulty_traversal(*call, bonus=1)


@tree_rule("the parent's row", ORDERED, world=DEEP)
def parents_row(
    tokens: Sequence[int],
    children: Sequence[Sequence[int]],
    q_rows: Sequence[Row],
    p_rows: Sequence[Row],
    accept: Sequence[Any],
    final: Any,
) -> TreeEmission:
    """Judges the children of a node by the laws of the root."""
    return walk(
        rrsw, tokens, children, [q_rows[0]] * len(q_rows), [p_rows[0]] * len(p_rows), accept, final
    )


@tree_rule("noise kept between calls", ORDERED, kind="rounds", world=f"toy, 2 x 1, {ORDERED.value}")
class KeptNoise(TreeVerifier):
    """Uses the uniforms of its first call in every later one."""

    def __init__(self) -> None:
        super().__init__(partial(walk, rrsw), ORDERED)
        self.rng: np.random.Generator | None = None
        self.kept: tuple[Sequence[Any], Any] = ((), 0.0)

    def uniforms(self, nodes: int, rng: np.random.Generator) -> tuple[Sequence[Any], Any]:
        """Those of the first call with this generator."""
        if rng is not self.rng or len(self.kept[0]) != nodes:
            self.rng, self.kept = rng, super().uniforms(nodes, rng)
        return self.kept
