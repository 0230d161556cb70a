"""The probability that a rule keeps the one draft at a position."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["by_token", "exact_match", "gumbel", "shares", "token"]

Array = Any
"""float64, or objects that are Fractions."""


def token(p: Array, q: Array) -> Array:
    """Sum of min(P, Q) = 1 - TV(P, Q): no lossless rule with one draft keeps more.

    ``block`` and ``greedy-block`` keep as much of a single draft.

    >>> float(token(np.array([0.5, 0.5]), np.array([0.75, 0.25])))
    0.75
    """
    return by_token("token", p, q).sum(axis=-1)


def exact_match(p: Array, q: Array) -> Array:
    """Sum of P Q: an independent sample of the target meets the draft."""
    return by_token("exact-match", p, q).sum(axis=-1)


def gumbel(p: Array, q: Array) -> Array:
    """Sum over j of 1 / sum over i of max(P_i / P_j, Q_i / Q_j): both races have one winner.

    Between (1 - TV) / (1 + TV) and 1 - TV.
    """
    return by_token("gumbel", p, q).sum(axis=-1)


def by_token(rule: str, p: Array, q: Array) -> Array:
    """Return the probability [..., V] that the draft is v and is kept.

    Args:
        rule: ``"token"``, ``"exact-match"`` or ``"gumbel"``.
        p, q: [..., V].
    """
    if rule == "token":
        return np.minimum(p, q)
    return p * q if rule == "exact-match" else _joint_wins(p, q)


def _joint_wins(p: Array, q: Array) -> Array:
    """1 / sum over i of max(P_i / P_j, Q_i / Q_j) for each j, in O(V log V).

    In the order of P/Q the sum is (what P has from j on) / P_j + (what Q has before j) / Q_j.
    """
    order = np.argsort(shares(p, q), axis=-1, kind="stable")
    p, q = (np.take_along_axis(law, order, axis=-1) for law in (p, q))
    behind = np.cumsum(p[..., ::-1], axis=-1)[..., ::-1]
    before = np.cumsum(q, axis=-1) - q
    denominator = behind * q + before * p
    wins = p * q / np.where(denominator > 0, denominator, 1)
    unsorted = np.empty_like(wins)
    np.put_along_axis(unsorted, order, wins, axis=-1)
    return unsorted


def shares(p: Array, q: Array) -> Array:
    """P / (P + Q), which orders tokens as P/Q does and is finite; 0 where both are 0."""
    total = p + q
    return p / np.where(total > 0, total, 1)
