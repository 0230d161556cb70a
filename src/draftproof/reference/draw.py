"""The draws from one row: inverse CDF, race, and argmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["best_token", "inverse_cdf", "mass", "race_winner"]


def mass(weights: npt.NDArray[Any]) -> Any:
    """Return the running sum in token order, so that every backend can round as this does."""
    return np.cumsum(weights)[-1]


def inverse_cdf(weights: npt.NDArray[Any], u: Any) -> int | None:
    """Draw a token with probability proportional to its weight: the first with C(v) > u * C(V-1).

    C is the running sum in token order, so token v owns the half-open interval
    [C(v-1), C(v)) of u * C(V-1), as the accept test u * q < p owns [0, p/q) of u. A token of
    weight zero owns nothing: no u in [0, 1) returns one.

    Args:
        weights: [V] numbers >= 0 (float64; Fractions work too).
        u: a uniform in [0, 1). One is consumed.

    Returns:
        The token, or None if the weights have no positive finite sum.

    Exact up to the rounding of the running sum.
    """
    cumulative = np.cumsum(weights)
    if not 0 < cumulative[-1] < math.inf:
        return None
    token = int(np.count_nonzero(cumulative <= u * cumulative[-1]))
    if token == len(weights):  # u * C(V-1) rounded up to C(V-1), as denormal weights can do
        token = int(np.flatnonzero(weights)[-1])
    return token


def race_winner(weights: npt.NDArray[Any], u: npt.NDArray[Any]) -> int | None:
    """Draw a token with probability proportional to its weight: the first to arrive in a race.

    Token v arrives at E(v) / weight(v), where E = -log1p(-u) is exponential. Ties go to the lowest
    id, and a token of weight zero never arrives.

    Args:
        weights: [V] numbers >= 0.
        u: [V] uniforms in [0, 1), all consumed.

    Returns:
        The token, or None if none has a positive finite weight.

    Exact up to the rounding of the logarithm.
    """
    runners = np.flatnonzero(weights > 0)
    if not len(runners):
        return None
    with np.errstate(over="ignore"):
        token = int(runners[np.argmin(-np.log1p(-u[runners]) / weights[runners])])
    return token if weights[token] < math.inf else None


def best_token(row: npt.NDArray[Any]) -> int | None:
    """Return the lowest id of the largest entry, None if none exceeds -inf; NaN never wins."""
    comparable = np.where(np.isnan(row), -np.inf, row)
    token = int(np.argmax(comparable))
    return token if comparable[token] > -np.inf else None
