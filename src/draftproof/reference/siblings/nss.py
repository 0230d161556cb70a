"""Naive sampling: draw the target's token, and go to the child that has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from draftproof.reference.draw import inverse_cdf
from draftproof.reference.siblings.choice import Choice, Row

__all__ = ["nss"]


def nss(
    siblings: Sequence[int], q: Row | None, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Y ~ P; go to the first child whose token is Y. Exact match, for a tree.

    Lossless for any siblings whatever. Iid ones are hit with probability sum P (1 - (1 - Q)^K).

    Args:
        siblings: K tokens.
        q: not read.
        p: [V].
        accept: K uniforms; the first one draws Y.
        final: draws Y where there are no siblings.
    """
    token = inverse_cdf(p, accept[0] if siblings else final)
    return Choice(siblings.index(token) if token in siblings else None, token)
