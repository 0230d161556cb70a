"""Recursive rejection sampling, with and without replacement.

Read `rrs` beside Miao et al. (SpecInfer, arXiv 2305.09781), and `rrsw` beside Jeon et al. (RSD,
arXiv 2402.14160) and Chen et al. (Sequoia, arXiv 2402.12374).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from draftproof.reference.chain import accepts, residual
from draftproof.reference.draw import mass
from draftproof.reference.siblings.choice import Choice, Row, normalised, stop, without

__all__ = ["rrs", "rrsw"]


def rrs(siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any) -> Choice:
    """Test the siblings in turn; each rejection replaces the target by its residual.

    ::

        for X in the siblings:   accept X with probability min(1, P/Q), else P <- norm (P - Q)+
        Y ~ P

    Args:
        siblings: K tokens, iid draws from q, in an order chosen without a look at their values.
        q: [V]. Read if there are siblings.
        p: [V].
        accept: K uniforms, one for each test.
        final: draws Y.
    """
    for i, x in enumerate(siblings):
        if accepts(p[x], q[x], accept[i]):
            return Choice(i, x)
        rest = residual(p, q)
        if not mass(rest) > 0:
            return stop(rest, p, final)
        p = normalised(rest)
    return stop(p, p, final)


def rrsw(siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any) -> Choice:
    """Test the siblings in turn, for draws without replacement: q changes too.

    ::

        for X in the siblings:   accept X with probability min(1, P/Q), else
                                 P <- norm (P - Q)+,  Q <- norm (Q without X)
        Y ~ P

    A rejected token that comes again, as iid siblings may, is skipped: what is left of them is a
    draw without replacement. Where Q has no mass left nothing can have been drawn: Y ~ P.

    Args:
        siblings: K tokens, drawn from q without replacement, IN DRAW ORDER; or iid.
        q: [V]. Read if there are siblings.
        p: [V].
        accept: K uniforms, one for each test.
        final: draws Y.
    """
    rejected: list[int] = []
    for i, x in enumerate(siblings):
        if x in rejected:
            continue
        if rejected and not mass(q) > 0:
            break
        if accepts(p[x], q[x], accept[i]):
            return Choice(i, x)
        rest = residual(p, q)
        if not mass(rest) > 0:
            return stop(rest, p, final)
        p, q = normalised(rest), normalised(without(q, x))
        rejected.append(x)
    return stop(p, p, final)
