"""K-sequential selection: every sibling meets the same test, made harder by a factor rho.

Read it beside Sun et al. (SpecTr, NeurIPS 2023, arXiv 2310.15141).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from draftproof.reference.chain import accepts, residual
from draftproof.reference.draw import mass
from draftproof.reference.siblings.choice import Choice, Row, stop

__all__ = ["k_seq", "k_seq_rho"]

STEPS = 2**18


def k_seq_rho(p: Row, q: Row, K: int) -> Any:
    """Return the root of 1 - (1 - beta)^K = rho beta in [1, K], rounded UP to a 2^18 / m.

    beta = sum min(P / rho, Q). rho beta never falls as rho grows and the left side never rises, so
    the rule is lossless at the root and above it, and below it is not. m is a whole number, the
    largest one: rho lies above the root by less than K^2 / 2^18, and the acceptance hardly below.
    """
    if K == 1:
        return 1
    grid = range(STEPS, STEPS // K - 1, -1)
    rough_p, rough_q = p.astype(np.float64), q.astype(np.float64)
    m = STEPS - bisect_left(grid, True, key=lambda m: _is_enough(rough_p, rough_q, K, STEPS / m))
    if p.dtype != object:
        return STEPS / m
    while not _is_enough(p, q, K, Fraction(STEPS, m)):  # rough sums may be a step below the root
        m -= 1
    return Fraction(STEPS, m)


def _is_enough(p: Row, q: Row, K: int, rho: Any) -> bool:
    beta = mass(np.minimum(p / rho, q))
    return bool(1 - (1 - beta) ** K <= rho * beta)


def k_seq(
    siblings: Sequence[int],
    q: Row,
    p: Row,
    accept: Sequence[Any],
    final: Any,
    rho: Any = None,
) -> Choice:
    """Accept the first X_i that passes; what all of them leave of P is the residual.

    ::

        beta = sum min(P / rho, Q),  hit = 1 - (1 - beta)^K
        accept X_i with probability min(1, P / (rho Q))
        Y ~ (P - min(P / rho, Q) hit / beta)+

    Args:
        siblings: K tokens, iid draws from q.
        q: [V]. Read if there are siblings.
        p: [V].
        accept: K uniforms, one for each test.
        final: draws Y.
        rho: a number at or above the root; `k_seq_rho` if it is left out.
    """
    K = len(siblings)
    if K == 0:
        return stop(p, p, final)
    if rho is None:
        rho = k_seq_rho(p, q, K)
    for i, x in enumerate(siblings):
        if accepts(p[x], rho * q[x], accept[i]):
            return Choice(i, x)
    kept = np.minimum(p / rho, q)
    beta = mass(kept)
    rest = residual(p, kept * (1 - (1 - beta) ** K) / beta) if beta > 0 else p
    return stop(rest, p, final)
