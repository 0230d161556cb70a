"""Traversal verification of a tree, from the leaves up: the chain's block rule, for trees.

Read it beside Weng, Hu et al. (NeurIPS 2025, arXiv 2505.12398). Contexts and rows are those of
`draftproof.reference.tree`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from draftproof.reference.block import weight_after
from draftproof.reference.chain import residual
from draftproof.reference.draw import inverse_cdf, mass
from draftproof.reference.siblings.choice import Row, normalised, without
from draftproof.reference.tree import ROOT, TreeEmission

__all__ = ["traversal"]


def traversal(
    tokens: Sequence[int],
    children: Sequence[Sequence[int]],
    q_rows: Sequence[Row],
    p_rows: Sequence[Row],
    accept: Sequence[Any],
    final: Any,
) -> TreeEmission:
    """Try the first chain from the root to a leaf; where it fails, take its leaf off the tree.

    ::

        w(root) = 1, w(x) = min(1, w(a) P(x|a) / Q(x|a)) for a child x of a
        take the first chain to a leaf x, siblings in draw order; with a its parent,
        with probability w(x): keep the chain, y ~ P(.|x)
        else: S = the mass of (w(a) P(.|a) - Q(.|a))+
              P(.|a) <- (w(a) P(.|a) - Q(.|a))+ / S
              Q(.|a) <- norm Q(.|a) without x
              w(a) <- S / (S + 1 - w(a)), where 0/0 is 1
              and take x away: a may now be a leaf; w(root) stays 1

    On one path it is `draftproof.reference.block`.

    Args:
        tokens: one for each node.
        children: of each context, drawn without replacement, IN DRAW ORDER.
        q_rows: [V] for each context; those without children are not read.
        p_rows: [V] for each context.
        accept: a uniform for each node, the test of its chain.
        final: draws y.
    """
    waiting, p = {ROOT: list(children[0])}, {ROOT: p_rows[0]}
    q = {ROOT: q_rows[0]} if waiting[ROOT] else {}
    path: list[int] = []
    w: list[Any] = [1]
    context, is_zero = ROOT, False
    while True:
        while waiting[context]:
            node = waiting[context].pop(0)
            x = tokens[node]
            w.append(weight_after(w[-1], p[context][x], q[context][x]))
            path.append(node)
            context, is_zero = node, False
            waiting[node] = list(children[node + 1])
            p[node] = p_rows[node + 1]
            if waiting[node]:
                q[node] = q_rows[node + 1]
        if not path or accept[context] < w[-1]:
            return TreeEmission(path, inverse_cdf(p[context], final), is_zero)
        x = tokens[path.pop()]
        context = path[-1] if path else ROOT
        w.pop()
        rest = residual(w[-1] * p[context], q[context])
        S = mass(rest)
        is_zero = not S > 0
        if not is_zero:
            p[context] = rest / S
        if w[-1] < 1:
            w[-1] = S / (S + (1 - w[-1]))
        q[context] = normalised(without(q[context], x))
