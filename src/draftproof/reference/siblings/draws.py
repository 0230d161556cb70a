"""How siblings are drawn from one law: the drafter's half of each rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from draftproof.reference.draw import inverse_cdf, mass
from draftproof.reference.siblings.choice import Row, without

__all__ = ["draw_iid", "draw_top", "draw_top_and_one", "draw_without_replacement"]


def draw_iid(q: Row, uniforms: Sequence[Any]) -> list[int]:
    """One draw from q for each uniform; tokens may repeat."""
    tokens = [inverse_cdf(q, u) for u in uniforms]
    return [token for token in tokens if token is not None]


def draw_without_replacement(q: Row, uniforms: Sequence[Any]) -> list[int]:
    """One draw for each uniform from what the earlier ones have left of q, in draw order.

    There are fewer tokens than uniforms where q has fewer.
    """
    tokens: list[int] = []
    for u in uniforms:
        rest = without(q, tokens)
        if not mass(rest) > 0:
            break
        token = inverse_cdf(rest, u)
        assert token is not None, "a law with mass"
        tokens.append(token)
    return tokens


def draw_top(q: Row, K: int) -> list[int]:
    """The K likeliest tokens of positive probability, ties to the lower id; no uniform."""
    ranked = np.argsort(-q, kind="stable")[:K]
    return [int(token) for token in ranked if q[token] > 0]


def draw_top_and_one(q: Row, K: int, u: Any) -> list[int]:
    """The K - 1 likeliest tokens, then one draw from q off them; K = 0 draws none.

    Where q has fewer than K tokens the draw still comes last, beside fewer certain ones.
    """
    if K == 0:
        return []
    support = int(np.count_nonzero(q > 0))
    certain = draw_top(q, min(K, support) - 1)
    return [*certain, *draw_without_replacement(without(q, certain), [u])]
