"""The probability that a rule accepts one of several drafts at one node.

Formulas and sources of the rules are those of `draftproof.reference.siblings`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from draftproof.efficiency.one_draft import Array
from draftproof.errors import complaint
from draftproof.reference.siblings.k_seq import k_seq_rho

__all__ = ["hu_greedy", "k_seq", "naive_tree", "nss", "rrs", "rrsw"]


def nss(p: Array, q: Array, num_siblings: int) -> Array:
    """Sum of P (1 - (1 - Q)^K): the target's sample is among K iid siblings."""
    return (p * (1 - (1 - q) ** num_siblings)).sum(axis=-1)


def naive_tree(p: Array, q: Array, num_siblings: int) -> Array:
    """Return the probability that the first of K iid siblings passes, or Y is one of the others.

    Sum of min(P, Q) + (P - Q)+ (1 - (1 - Q)^(K-1)).
    """
    left = _positive(p - q)
    return (np.minimum(p, q) + left * (1 - (1 - q) ** (num_siblings - 1))).sum(axis=-1)


def rrs(p: Array, q: Array, num_siblings: int) -> Array:
    """Return 1 - (1 - a_1) ... (1 - a_K) with a_k = sum of min(P_k, Q), for K iid siblings.

    P_1 = P, and P_(k+1) = norm (P_k - Q)+ is what a rejection leaves of P_k.
    """
    rejected = 1
    for _ in range(num_siblings):
        left = _positive(p - q)
        mass = left.sum(axis=-1, keepdims=True)
        rejected = rejected * mass[..., 0]
        p = np.where(mass > 0, left / np.where(mass > 0, mass, 1), p)
    return 1 - rejected


def rrsw(p: Array, q: Array, num_siblings: int) -> Array:
    """Return the acceptance of one or two siblings, drawn without replacement.

    The second meets norm (P - Q)+ with Q without the first, x, which was rejected with probability
    (Q - P)+(x): sum of min(P, Q) + sum over x of (Q - P)+(x) F(1 / (1 - Q(x))), where
    F(t) = sum of min(norm (P - Q)+, t Q). With F's breaks in order this is O(V log V). More
    siblings have no form as short.
    """
    if num_siblings not in (1, 2):
        found, fix = num_siblings, "enumerate them, or ask for rrs, which is never more"
        raise ValueError(
            complaint("num_siblings", "", found=found, wanted="1 or 2 for rrsw", fix=fix)
        )
    accepted = np.minimum(p, q).sum(axis=-1)
    if num_siblings == 1:
        return accepted
    V = p.shape[-1]
    rows = zip(p.reshape(-1, V), q.reshape(-1, V), strict=True)
    second = np.array([_second_of_two(*row) for row in rows], dtype=p.dtype)
    return accepted + second.reshape(p.shape[:-1])[()]


def _second_of_two(p: Array, q: Array) -> Any:
    left, rejected = _positive(p - q), np.where(q < 1, _positive(q - p), 0)
    mass = left.sum()
    if not mass > 0:
        return mass
    left = left / mass
    drawn = q > 0
    scale = 1 / np.where(q < 1, 1 - q, q)  # where q = 1 there is no second draw
    breaks = left[drawn] / q[drawn]
    order = np.argsort(breaks, kind="stable")
    below = np.concatenate([[0], np.cumsum(left[drawn][order])])
    above = np.concatenate([np.cumsum(q[drawn][order][::-1])[::-1], [0]])
    place = np.searchsorted(breaks[order], scale, side="right")
    return (rejected * (below[place] + scale * above[place])).sum()


def k_seq(p: Array, q: Array, num_siblings: int, rho: Any = None) -> Array:
    """Return 1 - (1 - beta)^K with beta = sum of min(P / rho, Q), for K iid siblings.

    Args:
        p, q: [..., V].
        num_siblings: K.
        rho: a number at or above the root of 1 - (1 - beta)^K = rho beta; the root, rounded up, if
            it is left out.
    """
    V, K = p.shape[-1], num_siblings
    if rho is None:
        rows = zip(p.reshape(-1, V), q.reshape(-1, V), strict=True)
        roots = np.array([k_seq_rho(*row, K) for row in rows], dtype=p.dtype)
        rho = roots.reshape((*p.shape[:-1], 1))
    beta = np.minimum(p / rho, q).sum(axis=-1)
    return 1 - (1 - beta) ** K


def hu_greedy(p: Array, q: Array, num_siblings: int) -> Array:
    """P(A) + sum off A of min(P, Q'): A the K - 1 likeliest tokens of q, Q' = norm (Q off A).

    Ties go to the lowest id. Where q has nothing off A there is no last draft.
    """
    order = np.argsort(-q, axis=-1, kind="stable")
    p, q = (np.take_along_axis(law, order, axis=-1) for law in (p, q))
    p_rest, q_rest = p[..., num_siblings - 1 :], q[..., num_siblings - 1 :]
    mass = q_rest.sum(axis=-1, keepdims=True)
    drawn = q_rest / np.where(mass > 0, mass, 1)
    return p[..., : num_siblings - 1].sum(axis=-1) + np.minimum(p_rest, drawn).sum(axis=-1)


def _positive(x: Array) -> Array:
    return np.where(x > 0, x, 0)
