"""The inverse-CDF draw and the argmax of one row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["best_token", "inverse_cdf"]


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


def best_token(row: npt.NDArray[Any]) -> int | None:
    """Return the lowest id of the largest entry, None if none exceeds -inf; NaN never wins."""
    comparable = np.where(np.isnan(row), -np.inf, row)
    token = int(np.argmax(comparable))
    return token if comparable[token] > -np.inf else None
