"""The rule for deterministic siblings, which have no law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from draftproof.reference.siblings.choice import Choice, Row, stop, without

__all__ = ["target_only"]


def target_only(
    siblings: Sequence[int], q: Row | None, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Go to the first child i with u < P(x_1) + .. + P(x_i); else Y ~ P off the siblings.

    A token that occurs twice counts once. Lossless for any siblings whatever: given them, child x
    is entered with probability P(x). For fixed siblings no rule enters one more often.

    Args:
        siblings: K tokens.
        q: not read.
        p: [V].
        accept: K uniforms; the first one decides.
        final: draws Y.
    """
    distinct = list(dict.fromkeys(siblings))
    reached: Any = 0
    for x in distinct:
        reached += p[x]
        if accept[0] < reached:
            return Choice(siblings.index(x), x)
    return stop(without(p, distinct), p, final)
