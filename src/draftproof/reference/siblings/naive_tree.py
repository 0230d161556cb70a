"""The naive tree: the token rule for the first sibling, and a chance hit on another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from draftproof.reference.chain import accepts, residual
from draftproof.reference.siblings.choice import Choice, Row, stop

__all__ = ["naive_tree"]


def naive_tree(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Accept X_1 with probability min(1, P/Q); else Y ~ (P - Q)+, which may be another child's.

    Args:
        siblings: K tokens. The first is drawn from q; the others may be anything that does not
            depend on the uniforms.
        q: [V]. Read if there are siblings.
        p: [V].
        accept: K uniforms; the first tests X_1, the second one draws Y.
        final: draws Y where there are less than two siblings.
    """
    if not siblings:
        return stop(p, p, final)
    x = siblings[0]
    if accepts(p[x], q[x], accept[0]):
        return Choice(0, x)
    choice = stop(residual(p, q), p, accept[1] if len(siblings) > 1 else final)
    if choice.token in siblings:
        return choice._replace(sibling=siblings.index(choice.token))
    return choice
