"""The greedy draft of Hu et al.: the likeliest tokens of q for certain, and one draw beside them.

Read it beside Hu, Zheng et al. (ICLR 2025, arXiv 2502.18779).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from draftproof.reference.chain import accepts, residual
from draftproof.reference.siblings.choice import Choice, Row, normalised, stop, without

__all__ = ["hu_greedy"]


def hu_greedy(siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any) -> Choice:
    """Test the one drawn sibling; the recovered token may be one of the certain ones.

    ::

        A = the siblings but the last,  X = the last,  Q' = norm (Q without A)
        accept X with probability min(1, P/Q'), else Y ~ (P - Q')+, a child if it is in A

    Accepted with probability P(A) + sum off A of min(P, Q'), the optimum for its own draft law.

    Args:
        siblings: the K - 1 likeliest tokens of q (any set does that does not depend on X), then X,
            drawn from q off that set.
        q: [V]. Read if there are siblings.
        p: [V].
        accept: K uniforms; the last one tests X, the first one draws Y.
        final: draws Y where X is the only sibling.
    """
    if not siblings:
        return stop(p, p, final)
    *certain, x = siblings
    rest = normalised(without(q, certain))
    if accepts(p[x], rest[x], accept[-1]):
        return Choice(len(certain), x)
    choice = stop(residual(p, rest), p, accept[0] if certain else final)
    if choice.token in certain:
        return choice._replace(sibling=certain.index(choice.token))
    return choice
