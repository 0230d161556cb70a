"""What a rule for siblings decides at one node, and the steps that the rules share.

A node has K drafted children X_1..X_K, its siblings, drawn from one law Q; P is the target's law
there. A rule goes to one of the children or stops with another token, so that the token's law is P.
Laws may be arrays of Fractions; uniforms may be anything that can be multiplied and compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from draftproof.reference.draw import inverse_cdf, mass

__all__ = ["Choice", "Row", "normalised", "stop", "without"]

Row = npt.NDArray[Any]


class Choice(NamedTuple):
    """Go to the child ``sibling``, whose token is ``token``; if it is None, stop with ``token``.

    ``token`` is None if the node cannot be decided. ``zero_residual`` says that a rejection met a
    residual without mass, so that the token came from p.
    """

    sibling: int | None
    token: int | None
    zero_residual: bool = False


def normalised(weights: Row) -> Row:
    """The weights divided by their mass; as they are if they have none."""
    total = mass(weights)
    return weights / total if total > 0 else weights


def without(law: Row, tokens: int | list[int]) -> Row:
    """The law with some tokens' weights set to 0, not normalised."""
    rest = law.copy()
    rest[tokens] = 0
    return rest


def stop(weights: Row, p: Row, u: Any) -> Choice:
    """Draw the last token from these weights, or from p where rounding left them no mass."""
    if mass(weights) > 0:
        return Choice(None, inverse_cdf(weights, u))
    return Choice(None, inverse_cdf(p, u), zero_residual=True)
